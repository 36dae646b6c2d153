"""Visitors without a browser, who ask the server for what a page asks."""

from __future__ import annotations

import json
import re
import secrets
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx

ASSET = re.compile(r"(?:specviz-files/\w+|(?<=[\"/])assets)/[\w.-]+\.(?:css|js)")
FOLLOW_SECONDS = 0.5
TIMEOUT_SECONDS = 900.0


@dataclass
class Timed:
    """How long the answers to one action took, in seconds, with when each was asked for."""

    samples: list[tuple[str, float, float]] = field(default_factory=list)

    def get(self, client: httpx.Client, action: str, path: str) -> httpx.Response:
        """Ask for a path. Raises httpx.HTTPError where the answer is no success."""
        return self._ask(action, lambda: client.get(path))

    def post(self, client: httpx.Client, action: str, path: str, body: Any) -> httpx.Response:
        """Send a body. Raises httpx.HTTPError where the answer is no success."""
        return self._ask(action, lambda: client.post(path, json=body))

    def _ask(self, action: str, call: Any) -> httpx.Response:
        begin = time.monotonic()
        answer: httpx.Response = call()
        self.samples.append((action, begin, time.monotonic() - begin))
        return answer.raise_for_status()


class Visitor:
    """One session of the page: it has loaded it, and keeps the connection that tells the server
    that somebody is there."""

    def __init__(self, url: str, timed: Timed) -> None:
        self._stack = ExitStack()
        self._client = self._stack.enter_context(
            httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS)
        )
        self.timed = timed
        self._session = secrets.token_hex(8)
        self._load()
        heartbeat = f"gradio_api/heartbeat/{self._session}"
        self._stack.enter_context(self._client.stream("GET", heartbeat))

    def leave(self) -> None:
        """Close the tab."""
        self._stack.close()

    def _load(self) -> None:
        page = self.timed.get(self._client, "page", "").text
        for path in dict.fromkeys(ASSET.findall(page)):
            self.timed.get(self._client, "asset", path)
        config = self.timed.get(self._client, "config", "config").json()
        self._values = {one["id"]: one["props"].get("value") for one in config["components"]}
        self._ids = {one["props"].get("elem_id"): one["id"] for one in config["components"]}
        self._events = config["dependencies"]
        for event in self._events:
            if any(kind == "load" for _, kind in event["targets"]):
                self._send(event, "load", {})

    def press(
        self, elem_id: str, event: str, action: str, values: dict[str, Any]
    ) -> dict[str, Any]:
        """Trigger an event of an element; what it returns, by element. ``values`` are inputs that
        are not as at first, by element."""
        wanted = [self._ids[elem_id], event]
        found = next(one for one in self._events if wanted in one["targets"])
        answer = self._send(found, action, {self._ids[name]: one for name, one in values.items()})
        names = {id_: name for name, id_ in self._ids.items()}
        outputs = (names.get(id_) for id_ in found["outputs"])
        return {name: value for name, value in zip(outputs, answer, strict=True) if name}

    def _send(self, event: dict[str, Any], action: str, given: dict[int, Any]) -> list[Any]:
        """Have an event's work done, on values by component; what it returns."""
        data = [given.get(id_, self._values.get(id_)) for id_ in event["inputs"]]
        body = {"fn_index": event["id"], "data": data, "session_hash": self._session}
        answer = self.timed.post(self._client, action, "gradio_api/run/predict", body).json()
        return list(answer["data"])

    def news(self, ticket: str, since: int) -> dict[str, Any]:
        """What is new of a run."""
        body = {
            "data": {"ticket": ticket, "since": since},
            "fn_name": "news",
            "component_id": self._ids["stage"],
            "session_hash": self._session,
        }
        path = "gradio_api/component_server/"
        return dict(self.timed.post(self._client, "news", path, body).json())


class Watcher(Visitor):
    """Opens recorded runs and looks at them."""

    def open_trace(self, exhibit: str, prompt: str) -> None:
        """Put a run of the gallery on the stage. Raises AssertionError where another comes."""
        value = json.loads(self._values[self._ids["traces-list"]])
        value["action"] = {"do": "left", "id": f"gallery:{exhibit}"}
        shown = self.press("traces-list", "show", "open trace", {"traces-list": json.dumps(value)})
        told = shown["traces-left"]
        if not isinstance(told, str):  # it was on the stage already
            return
        start = json.loads(told.splitlines()[0])
        assert start["prompt"] == prompt, f"{exhibit} shows {start['prompt'][:60]!r}"


@dataclass
class Ran:
    """A run as a person saw it: the texts of both lanes, seconds until its first line and until
    its end, and the places in the line that were told."""

    texts: tuple[str, str]
    waited: float
    took: float
    places: list[str]


class Person(Visitor):
    """Runs prompts of their own and reads what comes."""

    def run(self, prompt: str, tokens: int) -> Ran:
        """Press Run and follow it to its end. Raises RuntimeError where the page tells of an
        error."""
        begin = time.monotonic()
        values = {"prompt": prompt, "max_new_tokens": tokens, "min_new_tokens": tokens}
        shown = self.press("run", "click", "run", values)
        ticket = json.loads(shown["stage"])["ticket"]
        texts = {"speculative": "", "baseline": ""}
        places: list[str] = []
        started, since = 0.0, 0
        while True:
            news = self.news(ticket, since)
            for text in news["lines"].splitlines():
                event = json.loads(text)
                if event["e"] == "error":
                    raise RuntimeError(event["message"])
                if event["e"] == "start":
                    started = started or time.monotonic()
                    assert event["prompt"] == prompt, f"a run of {event['prompt'][:60]!r} came"
                if event["e"] == "status" and "ahead of yours" in event["message"]:
                    places.append(event["message"])
                if event["e"] == "round":
                    texts[event["lane"]] += _committed(event["round"])
            since = news["next"]
            if news["resting"]:
                break
            time.sleep(FOLLOW_SECONDS)
        both = (texts["speculative"], texts["baseline"])
        return Ran(both, started - begin, time.monotonic() - begin, places)


def _committed(plain: dict[str, Any]) -> str:
    """What a round added to the text."""
    tokens = [*plain.get("drafted", ()), *filter(None, [plain.get("added")])]
    kept = ("accepted", "resampled", "bonus", "target")
    return "".join(token["text"] for token in tokens if token["fate"] in kept)
