"""A visitor without a browser: presses Run and reads the run over HTTP as the page's script does.

Standard library only and a process of its own, so that what it costs itself is next to nothing.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Any
from urllib.request import Request, urlopen

POLL_SECONDS = 0.1  # the most a page asks


def follow(url: str, **settings: Any) -> int:
    """Run with ``settings`` (by element id) and read all of it; the number of lines."""
    reader = _Reader(url)
    ticket = reader.run(settings)
    since = lines = 0
    while True:
        news = reader.news(ticket, since)
        lines += news["lines"].count("\n")
        if news["resting"]:
            return lines
        since = news["next"]
        time.sleep(POLL_SECONDS)


class _Reader:
    """One session of a served page."""

    def __init__(self, url: str) -> None:
        self._api = url.rstrip("/") + "/gradio_api"
        self._session = secrets.token_hex(8)
        config = json.load(urlopen(url.rstrip("/") + "/config"))
        self._components = {one["id"]: one for one in config["components"]}
        self._ids = {one["props"].get("elem_id"): one["id"] for one in config["components"]}
        press = [self._ids["run"], "click"]
        self._run = next(one for one in config["dependencies"] if press in one["targets"])

    def run(self, settings: dict[str, Any]) -> str:
        """Press Run; the ticket of the race."""
        chosen = {self._ids[name]: value for name, value in settings.items()}
        data = [
            chosen.get(id_, self._components[id_]["props"].get("value"))
            for id_ in self._run["inputs"]
        ]
        answer = self._post("run/predict", {"fn_index": self._run["id"], "data": data})
        shown = answer["data"][self._run["outputs"].index(self._ids["stage"])]
        return json.loads(shown)["ticket"]

    def news(self, ticket: str, since: int) -> dict[str, Any]:
        """What is new of the race after ``since``."""
        asked = {"ticket": ticket, "since": since}
        body = {"data": asked, "fn_name": "news", "component_id": self._ids["stage"]}
        return self._post("component_server/", body)

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        data = json.dumps({**body, "session_hash": self._session}).encode()
        headers = {"Content-Type": "application/json"}
        return json.load(urlopen(Request(f"{self._api}/{path}", data, headers)))
