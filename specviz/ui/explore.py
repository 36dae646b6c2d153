"""The Explore tab: what to run on the left, the stage on the right, and the events between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import gradio as gr

from specviz.host import OWN_MACHINE, Host
from specviz.race import Race, baseline_key, begin, replay_events
from specviz.records import SettingsError
from specviz.trace import TraceError, dump_trace
from specviz.ui.controls import Controls, Request, main_controls, more_controls
from specviz.ui.diagnosis import DiagnosisPanel
from specviz.ui.elements import QUIET, Choice, plain, stage, status, status_line
from specviz.ui.following import answer, order, until_read, until_rest
from specviz.ui.loading import Loading, Row, Shelf, until_weighed
from specviz.ui.returning import Returning
from specviz.ui.saved import SavedFiles
from specviz.ui.session import Memory, Races
from specviz.ui.turns import Turns
from specviz.ui.uploads import sent_trace
from specviz.ui.worker import Progress, RaceWorker, line

SEATS = 64

IDLE, BUSY, PAUSED, LOADING = "idle", "busy", "paused", "loading"
WHY_IDLE = {"stop": "Nothing is running.", "save": "Nothing has been run here yet."}
WHY_BUSY = dict.fromkeys(("run", "step", "save", "open"), "A run is going on. Stop ends it.")
WHY_LOADING = {
    **dict.fromkeys(("run", "step"), "The models are still loading."),
    "stop": "Nothing is running.",
    "save": "Nothing has been run here yet.",
}
SHOW_STAGE_JS = "() => { document.querySelector('#stage').scrollIntoView({block: 'nearest'}); }"
READY = "Ready. Run goes to the end, Step goes one round."
ENDINGS = {
    "eos": "The model ended its text.",
    "length": "Max new tokens reached.",
    "stop": "A stop string was reached.",
    "context": "The model's context is full.",
    "stopped": "Stopped. What was decoded is kept.",
}


class Explore:
    """One page's Explore tab. Holds what all visitors share: the shelf of models, the line for
    the processor and each visitor's race."""

    def __init__(
        self,
        shelf: Shelf,
        pairs: Sequence[Row],
        loading: Loading,
        races: Races,
        turns: Turns,
        host: Host = OWN_MACHINE,
    ) -> None:
        self.shelf, self.races, self.turns, self.host = shelf, races, turns, host
        self.pairs = {choice.name: (target, draft) for choice, target, draft in pairs}
        self._choices = [choice for choice, _, _ in pairs]
        self.loading = loading
        self.diagnosis = DiagnosisPanel(races, list(self.pairs))
        self._files = SavedFiles()

    # --- what it looks like ----------------------------------------------------------------

    def draw(
        self, choices: Sequence[Choice], drafters: Mapping[str, str], gamma: int, shown: str
    ) -> None:
        """Put the tab into the block that is open; ``shown`` is on the stage at first paint."""
        self.memory = gr.State(Memory())
        with gr.Row(elem_id="explore"):
            with gr.Column(scale=0, min_width=300, elem_id="controls"):
                fields: dict[str, Any] = main_controls(choices, drafters, gamma)
                with gr.Row(elem_id="actions"):
                    self.run = gr.Button(
                        "Loading models", variant="primary", interactive=False, elem_id="run"
                    )
                    self.step = gr.Button("Step", interactive=False, elem_id="step")
                    self.stop = gr.Button("Stop", interactive=False, elem_id="stop")
                self.status = status_line(status("Loading models", "busy", WHY_LOADING))
                self.controls = Controls(**fields, **more_controls(self.host))
                with gr.Row(elem_id="files"):
                    self.save = gr.Button(
                        "Save trace", size="sm", interactive=False, elem_id="save"
                    )
                    self.open = gr.UploadButton(
                        "Open trace", size="sm", file_types=[".json"], elem_id="open"
                    )
                    self.link = gr.Button("Copy link", size="sm", elem_id="link")
                self.file = gr.DownloadButton("Trace", visible="hidden", elem_id="trace-file")
            with gr.Column(scale=1, min_width=320, elem_id="stage-column"):
                self.stage = stage(shown, self._news())
                self.diagnosis.draw()

    # --- what happens ----------------------------------------------------------------------

    def wire(self, page: gr.Blocks, returning: Returning, point: gr.HTML) -> None:
        """Connect the events. Those that compute share one ``concurrency_id``: it bounds how
        many people may wait, and ``Turns`` lets one of them compute at a time and tells each
        how many are ahead, which Gradio's own queue would only show over the stage. ``point``
        shows the measured point among the curves of Theory."""
        inputs = [self.memory, *self.controls.inputs()]
        buttons = [self.status, self.run, self.step, self.stop, self.save, self.open]
        outputs = [self.stage, *buttons]
        model = QUIET | {"concurrency_id": "models", "concurrency_limit": SEATS}
        every: dict[str, Any] = {"trigger_mode": "multiple"}
        ended = [*buttons, self.memory]
        rests = []
        for pressed, call, given in (
            (self.run.click, self.on_run, inputs),
            (self.step.click, self.on_step, inputs),
            (self.stage.back, self.on_back, self.memory),
            (returning.back, self.on_back, self.memory),
        ):
            begun = pressed(call, given, [self.stage, *ended], queue=False, **QUIET, **every)
            rested = begun.success(self.on_wait, self.memory, None, **model, **every)
            rest = rested.then(self.on_rest, self.memory, ended, queue=False, **QUIET, **every)
            rests.append(rest)
        self.diagnosis.wire(rests, self.controls, point)
        self.stop.click(self.on_stop, None, outputs, queue=False, **QUIET)
        shown = [*outputs, *self.diagnosis.parts()]
        self.open.upload(self.on_open, self.open, shown, queue=False, **QUIET).success(
            None, None, None, js=SHOW_STAGE_JS
        )
        # In the queue, since an error can be shown from there alone.
        self.save.click(self.on_save, None, self.file, concurrency_limit=None, **QUIET).success(
            None, None, None, js="() => { document.querySelector('#trace-file').click(); }"
        )
        watching = [self.status, self.run, self.step, self.controls.drafter]
        page.load(self.on_load, None, watching, concurrency_limit=None, **QUIET)
        page.load(self.on_weighed, None, self.controls.pair, concurrency_limit=None, **QUIET)
        returning.keep(self.races, self._files)

    async def on_load(self, request: gr.Request) -> AsyncIterator[dict[Any, Any]]:
        """Tell each new page how far the models are, until Run can be used. The preferred drafter
        is chosen then, unless the page's own link names one."""
        told = ""
        self.loading.begin()
        while self.loading.state in ("waiting", "loading"):
            if told != (told := self.loading.text):
                yield {self.status: status(told, "busy", WHY_LOADING)}
            await asyncio.sleep(0.2)
        ready: dict[Any, Any] = self._buttons(IDLE)
        if self.loading.state == "failed":
            ready[self.status] = status(self.loading.text, "error", WHY_IDLE)
        else:
            names = self.loading.drafters
            linked = request.query_params.get("drafter")
            chosen = linked if linked in names else names[0]
            ready[self.controls.drafter] = gr.update(choices=names, value=chosen)
            ready[self.status] = status(READY, reasons=WHY_IDLE)
        if self.races.of(request.session_hash or "") is not None:
            # Loaded anew in the middle of a run: the buttons and the status are about that.
            ready = {self.controls.drafter: ready.get(self.controls.drafter, gr.skip())}
        yield {key: ready[key] for key in ready if key not in (self.stop, self.save, self.open)}

    async def on_weighed(self, request: gr.Request) -> Any:
        """Say of each pair what it needs, or why it cannot run here, once that is known. A pair
        that can run is chosen then, unless the page's own link names one."""
        await until_weighed(self.loading)
        more = self._choices[len(self.loading.rows) :]
        choices = [*(choice for choice, _, _ in self.loading.rows), *more]
        update: dict[str, Any] = {"choices": plain(choices)}
        if "pair" not in request.query_params:
            update["value"] = self.loading.first
        return gr.update(**update)

    def on_run(self, memory: Memory, request: gr.Request, *values: Any) -> dict[Any, Any]:
        """Run to the end, going on where a paused race stands."""
        return self._proceed(None, memory, values, request)

    def on_step(self, memory: Memory, request: gr.Request, *values: Any) -> dict[Any, Any]:
        """One speculative round more."""
        return self._proceed(1, memory, values, request)

    def _proceed(
        self, steps: int | None, memory: Memory, values: Sequence[Any], request: gr.Request
    ) -> dict[Any, Any]:
        session = request.session_hash or ""
        race = self.races.of(session)
        try:
            wanted = self.controls.read(values, self.pairs, self.host)
        except SettingsError as error:
            return {self.memory: replace(memory, refused=str(error))}
        same = race is not None and race.request == wanted
        if race is not None and race.state == "going" and (steps is None or not same):
            return {self.memory: replace(memory, refused="A run is going on. Stop ends it.")}
        if race is None or race.state == "over" or not same:
            race = RaceWorker(
                lambda progress: self._make(wanted, memory, progress), self.turns, wanted
            )
            self.races.put(session, race)
        race.proceed(steps)
        return {
            self.stage: order(race),
            **self._buttons(BUSY, stepping=steps is not None),
            self.status: status("Running", "busy", WHY_BUSY),
            self.memory: replace(memory, refused=""),
        }

    def _news(self) -> Any:
        """The function the page asks for what is new of the race it follows. (A function of its
        own: Gradio marks what may be called, and a method cannot be marked.)"""

        async def news(asked: dict[str, Any]) -> dict[str, Any]:
            race = self.races.with_ticket(str(asked["ticket"]))
            return await answer(race, max(0, int(asked["since"])))

        return news

    def on_back(self, memory: Memory, request: gr.Request) -> dict[Any, Any]:
        """Show the visitor's race on a page that is back: its connection was lost, or it was
        loaded anew."""
        race = self.races.of(request.session_hash or "")
        if race is None:
            return {self.memory: memory}
        memory = replace(memory, refused="")
        if race.state != "going":
            return {self.memory: memory, **self._rest(race, memory), self.stage: order(race)}
        return {
            self.stage: order(race),
            **self._buttons(BUSY),
            self.status: status("Running", "busy", WHY_BUSY),
            self.memory: memory,
        }

    async def on_wait(self, memory: Memory, request: gr.Request) -> None:
        """Until the race rests. The lines do not go this way: an update of a component costs the
        browser more than all that the stage draws."""
        race = self.races.of(request.session_hash or "")
        if race is not None and not memory.refused:
            await until_read(race)

    def on_rest(self, memory: Memory, request: gr.Request) -> dict[Any, Any]:
        """The buttons and the status line once the race rests."""
        race = self.races.of(request.session_hash or "")
        if memory.refused or race is None:
            shown = status(memory.refused, "error") if memory.refused else gr.skip()
            return {self.status: shown}
        if race.state == "going":
            return {self.status: gr.skip()}
        return self._rest(race, memory)

    def _make(self, wanted: Request, memory: Memory, progress: Progress) -> Race:
        """Load the pair and set up the race; in the worker's thread."""
        pair = self.shelf.load(wanted.target, wanted.draft, dtype=wanted.dtype, progress=progress)
        baseline: Any = wanted.baseline != "off"
        key = baseline_key(pair, wanted.prompt, wanted.settings)
        if wanted.baseline == "reuse" and memory.baseline and memory.baseline_key == key:
            baseline = memory.baseline
        return begin(pair, wanted.drafter, wanted.prompt, wanted.settings, baseline=baseline)

    def _rest(self, race: RaceWorker, memory: Memory) -> dict[Any, Any]:
        """What the page shows when a race pauses or is over."""
        if race.state == "paused":
            rounds = f"{race.pace.rounds} round" + "s" * (race.pace.rounds != 1)
            text = f"Paused after {rounds}. Run goes on from here; a changed setting starts anew."
            return {**self._buttons(PAUSED), self.status: status(text, reasons={})}
        trace = race.trace()
        run = trace.run("speculative") if trace else None
        plain = trace.run("baseline") if trace else None
        if race.error:
            shown = status("The run failed. The stage says why.", "error", WHY_IDLE)
        elif run is None:
            shown = status("Stopped before the first round.", reasons=WHY_IDLE)
        elif race.cut_short:
            shown = status(race.cut_short, "error", {"stop": WHY_IDLE["stop"]})
        else:
            stopped = plain is not None and plain.finish_reason == "stopped"
            text = ENDINGS.get("stopped" if stopped else run.finish_reason, "")
            if trace and trace.note:
                text += f" {trace.note}"
            if race.request.baseline == "reuse" and not race.pace.baseline_reused:
                text += " The baseline was measured anew: no earlier one fits this run."
            shown = status(text, reasons={"stop": WHY_IDLE["stop"]})
        if (
            race.race
            and trace
            and plain
            and plain.finish_reason not in ("stopped", "error", "running")
        ):
            key = baseline_key(race.race, trace.prompt, trace.settings)
            memory = replace(memory, baseline=plain, baseline_key=key)
        return {
            **self._buttons(IDLE, saved=run is not None),
            self.status: shown,
            self.memory: memory,
        }

    async def on_stop(self, request: gr.Request) -> dict[Any, Any]:
        """Stop within one round. The stream of the run shows the end; a paused race has no
        stream, so its end is shown from here."""
        race = self.races.of(request.session_hash or "")
        if race is None or race.state == "over":
            return {self.status: status("Nothing is running.")}
        paused = race.state == "paused"
        race.stop()
        if not paused:
            return {self.stop: gr.update(interactive=False)}
        await until_rest(race)
        rest = self._rest(race, Memory())
        rest.pop(self.memory, None)
        return {**rest, self.stage: order(race)}

    def on_open(self, path: str | None, request: gr.Request) -> dict[Any, Any]:
        """Show a trace from a file. Needs no model and waits for none."""
        try:
            trace = sent_trace(path)
        except TraceError as error:
            return {self.status: status(f"This trace cannot be opened: {error}", "error")}
        self.races.drop(request.session_hash or "")
        shown = status("A recorded run is on the stage.", reasons=WHY_IDLE)
        update = {self.stage: lines(replay_events(trace)), self.status: shown}
        update |= self.diagnosis.showing(trace)
        if self.loading.state in ("ready", "failed"):
            update |= self._buttons(IDLE)
        return update

    def on_save(self, request: gr.Request) -> str:
        """Write the visitor's last race to a file of their own."""
        race = self.races.of(request.session_hash or "")
        trace = race.trace() if race else None
        if trace is None:
            raise gr.Error("There is no run to save yet.", print_exception=False)
        name = f"specviz-{time.strftime('%Y%m%d-%H%M%S')}.json"
        return str(self._files.write(request.session_hash or "", name, dump_trace(trace)))

    def _buttons(self, state: str, saved: bool = False, stepping: bool = False) -> dict[Any, Any]:
        """Which buttons can be used; the status line has the reasons for those that cannot.
        Step stays as it is during a step, so that it keeps the keyboard's focus."""
        busy = state == BUSY
        if stepping:
            return {self.stop: gr.update(interactive=True), self.open: gr.update(interactive=False)}
        label = {BUSY: "Running", PAUSED: "Continue"}.get(state, "Run")
        return {
            self.run: gr.update(value=label, interactive=not busy),
            self.step: gr.update(interactive=not busy),
            self.stop: gr.update(interactive=state in (BUSY, PAUSED)),
            self.save: gr.update(interactive=state == PAUSED or saved),
            self.open: gr.update(interactive=not busy),
        }


def lines(events: Iterable[dict[str, Any]]) -> str:
    """Events as the stage takes them."""
    return "".join(line(event) for event in events)
