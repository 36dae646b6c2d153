"""The page's functions as named endpoints, for programs: /run, /pairs, /load_trace."""

# No deferred annotations here: gr.api reads the type hints as they stand.

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import gradio as gr

from specviz.host import Host
from specviz.race import Race, begin, done_event
from specviz.records import SettingsError, Trace
from specviz.trace import TraceError, load_trace
from specviz.ui.controls import request
from specviz.ui.loading import Loading, Shelf
from specviz.ui.turns import Turns
from specviz.ui.worker import RaceWorker


def expose(shelf: Shelf, loading: Loading, turns: Turns, host: Host) -> None:
    """Add the endpoints to the page that is open. What ``host`` does not allow on the page, they
    do not allow either."""
    known = {choice.name: (target, draft) for choice, target, draft in loading.rows}
    default = loading.first

    def run(
        prompt: str,
        pair: str = default,
        drafter: str = "draft model",
        gamma: int = 4,
        schedule: str = "constant",
        confidence: float = 0.0,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        max_new_tokens: int = 128,
        min_new_tokens: int = 0,
        repetition_penalty: float = 1.0,
        no_repeat_ngram_size: int = 0,
        seed: int = 0,
        stop: str = "",
        chat: bool = True,
        long_prompt: str = "refuse",
        dtype: str = "auto",
        baseline: bool = True,
    ) -> Iterator[dict]:
        """Run a prompt and its baseline. Yields {"tokens": n, "status": what is waited for} while
        it goes on, last the summary: text, finish_reason, note, figures, settings, pair,
        machine."""
        target, draft = known.get(pair, ("", ""))
        if not target:
            raise gr.Error(f"There is no pair {pair!r}; /pairs lists them.", print_exception=False)
        try:
            wanted = request(
                host=host,
                target=target,
                draft=draft,
                drafter=drafter,
                prompt=prompt,
                dtype=dtype,
                gamma=gamma,
                schedule=schedule,
                confidence=confidence,
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                min_p=min_p,
                max_new_tokens=max_new_tokens,
                min_new_tokens=min_new_tokens,
                repetition_penalty=repetition_penalty,
                no_repeat_ngram_size=no_repeat_ngram_size,
                seed=seed,
                stop=stop,
                chat=chat,
                long_prompt=long_prompt,
            )
        except SettingsError as error:
            raise gr.Error(str(error), print_exception=False) from None

        def make(progress: Any) -> Race:
            loaded = shelf.load(target, draft, dtype=dtype, progress=progress)
            return begin(loaded, drafter, prompt, wanted.settings, baseline=baseline)

        yield from _follow(RaceWorker(make, turns))

    def list_pairs() -> list:
        """The model pairs: name, title, target, draft, and why one cannot run here ("" if it
        can)."""
        loading.weigh()
        return [
            {
                "name": choice.name,
                "title": choice.title,
                "target": target,
                "draft": draft,
                "why_not": choice.why,
            }
            for choice, target, draft in loading.rows
        ]

    gr.api(run, api_name="run", concurrency_id="models", concurrency_limit=64)
    gr.api(list_pairs, api_name="pairs", queue=False)
    expose_reading()


def expose_reading() -> None:
    """Add the endpoint that needs no model to the page that is open."""

    def open_trace(trace: str) -> dict:
        """Check a trace, given as its JSON text, and return its summary."""
        try:
            return summary(load_trace(trace))
        except TraceError as error:
            raise gr.Error(f"This trace cannot be opened: {error}", print_exception=False) from None

    gr.api(open_trace, api_name="load_trace", queue=False)


def _follow(worker: RaceWorker) -> Iterator[dict]:
    """A race to its end, told about twice a second."""
    worker.proceed()
    try:
        while not worker.join(0.5):
            yield {"tokens": worker.pace.tokens, "status": worker.status}
    finally:
        worker.stop()
    trace = worker.trace()
    if worker.error:
        raise gr.Error(worker.error, print_exception=False)
    assert trace is not None
    yield summary(trace)


def summary(trace: Trace) -> dict[str, Any]:
    """A trace's text and figures in one flat object."""
    run = trace.run("speculative") or trace.runs[0]
    done = done_event(trace)
    return {
        "pair": asdict(trace.pair),
        "machine": asdict(trace.machine),
        "drafter": run.drafter,
        "settings": asdict(trace.settings),
        "prompt": trace.prompt,
        "text": run.text,
        "finish_reason": run.finish_reason,
        "note": trace.note,
        **done["figures"],
        "same_as_baseline": done["same_as_baseline"],
    }
