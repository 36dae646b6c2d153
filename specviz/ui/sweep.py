"""The Sweep tab: a grid of runs on the left, what came out of it on the right."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import gradio as gr

from specviz.host import OWN_MACHINE, Host
from specviz.metrics import DEFINITIONS
from specviz.prompts import PromptsError
from specviz.records import SettingsError
from specviz.rows import Setup
from specviz.sweep import JournalError, Plan, PlanError, Sweep, cross, sources
from specviz.ui.elements import ASSETS, QUIET, element
from specviz.ui.loading import Loading, Shelf, until_weighed
from specviz.ui.returning import Returning
from specviz.ui.saved import SavedFiles
from specviz.ui.serving import PLOTLY, address
from specviz.ui.sweeping import Opened, Sweeping, follow, view
from specviz.ui.sweepinputs import Inputs, Wanted, grid_inputs, more_inputs, prompt_inputs
from specviz.ui.turns import Turns
from specviz.ui.uploads import upload
from specviz.ui.visitors import OneEach
from specviz.ui.worker import Progress

SWEEP_JS = """
const mount = () => {
  const options = { definitions: props.definitions, plotly: props.plotly };
  const sweep = window.specviz.mountSweep(element, options);
  watch("value", () => sweep.show(props.value || ""));
  sweep.show(props.value || "");
  element.dataset.mounted = "";
};
if (window.specviz?.mountSweep) mount();
else window.addEventListener("specviz-ready", mount, { once: true });
"""
DOWNLOAD_JS = "() => { document.querySelector('#sweep-file').click(); }"
SEATS = 64


class SweepTab:
    """One page's Sweep tab. ``loading`` knows the pairs on offer, as on Explore."""

    def __init__(
        self,
        shelf: Shelf,
        loading: Loading,
        turns: Turns,
        host: Host = OWN_MACHINE,
    ) -> None:
        self._shelf, self._turns, self._host = shelf, turns, host
        self._sweeps: OneEach[Sweeping | Opened] = OneEach(
            lambda sweep: sweep.unwanted.set(),
            left=lambda sweep: sweep.unwanted.leave_alone(),
            back=lambda sweep: sweep.unwanted.attend(),
        )
        self._files = SavedFiles(kept=True)
        self._loading = loading

    # --- what it looks like ----------------------------------------------------------------

    def draw(self) -> None:
        """Put the tab into the block that is open."""
        with gr.Row(elem_id="sweep"):
            with gr.Column(scale=0, min_width=300, elem_id="sweep-controls"):
                grid = grid_inputs(self._titles())
                with gr.Row(elem_id="sweep-actions"):
                    self.run = gr.Button("Run sweep", variant="primary", elem_id="sweep-run")
                    self.stop = gr.Button("Stop", interactive=False, elem_id="sweep-stop")
                self.inputs = Inputs(**grid, **prompt_inputs(), **more_inputs(self._host))
                with gr.Row(elem_id="sweep-files"):
                    self.csv = gr.Button("Save CSV", size="sm", elem_id="sweep-csv")
                    self.json = gr.Button("Save JSON", size="sm", elem_id="sweep-json")
                    self.open = gr.UploadButton(
                        "Open", size="sm", file_types=[".json"], elem_id="sweep-open"
                    )
                self.saved = gr.DownloadButton("File", visible="hidden", elem_id="sweep-file")
            with gr.Column(scale=1, min_width=320, elem_id="sweep-column"):
                self.advise = gr.Button("Measure the advice", visible=False, elem_id="sweep-advise")
                self.results = element(
                    view(""),
                    (ASSETS / "sweep.html").read_text(encoding="utf-8"),
                    SWEEP_JS,
                    "sweep-results",
                    definitions=DEFINITIONS,
                    plotly=address(PLOTLY),
                )

    # --- what happens ----------------------------------------------------------------------

    def wire(self, page: gr.Blocks, returning: Returning) -> None:
        """Connect the events. Sweeps stand in the same line as the races of Explore."""
        buttons = [self.run, self.stop, self.advise]
        every = [self.results, *buttons]
        model: dict[str, Any] = QUIET | {"concurrency_id": "models", "concurrency_limit": SEATS}
        for event, begin, inputs in (
            (self.run.click, self.on_run, self.inputs.all()),
            (self.advise.click, self.on_advise, self.inputs.all()),
            (returning.back, self.on_back, None),
        ):
            begun = event(begin, inputs, every, queue=False, **QUIET)
            shown = begun.success(self.on_follow, None, self.results, **model)
            shown.then(self.on_rest, None, buttons, queue=False, **QUIET)
        self.stop.click(self.on_stop, None, self.stop, queue=False, **QUIET)
        self.open.upload(self.on_open, self.open, every, queue=False, **QUIET)
        for button, save in ((self.csv, self.on_csv), (self.json, self.on_json)):
            # In the queue, since an error can be shown from there alone.
            saved = button.click(save, None, self.saved, concurrency_limit=None, **QUIET)
            saved.success(None, None, None, js=DOWNLOAD_JS)
        page.load(self.on_weighed, None, self.inputs.target, concurrency_limit=None, **QUIET)
        returning.keep(self._sweeps, self._files)

    def on_run(self, request: gr.Request, *values: Any) -> dict[Any, Any]:
        """Measure the grid. What the visitor's last sweep or opened file holds of it already is
        not measured again."""
        return self._begin(values, (), request)

    def on_advise(self, request: gr.Request, *values: Any) -> dict[Any, Any]:
        """Measure what the diagnosis recommends, on the same prompts."""
        last = self._last(request.session_hash or "")
        advice = last.diagnosis.advice if last and last.diagnosis else None
        advised = (advice.setup,) if advice and advice.setup else ()
        return self._begin(values, advised, request)

    def _begin(
        self, values: Sequence[Any], more: tuple[Setup, ...], request: gr.Request
    ) -> dict[Any, Any]:
        session = request.session_hash or ""
        last = self._last(session)
        if last is not None and not last.over:
            return {self.run: gr.skip()}
        try:
            wanted = self.inputs.read(values, self._host)
        except (PromptsError, SettingsError) as error:
            return {self.results: view(str(error), "error", last.results if last else None)}
        done = last.measured if last else []

        def make(progress: Progress) -> Sweep:
            pairs = self._load(wanted, progress)
            plan = _plan(wanted, pairs, more)
            self._host.check_sweep(len(plan))
            return Sweep(pairs, plan, done)

        path = self._files.path(session, "specviz-sweep.json")
        self._sweeps.put(session, Sweeping(make, self._turns, path, last))
        return {
            self.run: gr.update(value="Running", interactive=False),
            self.stop: gr.update(interactive=True),
            self.advise: gr.update(visible=False),
        }

    def _load(self, wanted: Wanted, progress: Progress) -> dict[str, Any]:
        """The target with each of its drafts, by the name of the draft."""
        return {
            draft: self._shelf.load(wanted.target, draft, dtype=wanted.dtype, progress=progress)
            for choice, target, draft in self._loading.rows
            if target == wanted.target and not choice.why
        }

    def _titles(self) -> dict[str, str]:
        """What each target that can run is called, as far as is known which can."""
        titles: dict[str, str] = {}
        for choice, target, _ in self._loading.rows:
            if not choice.why:
                titles.setdefault(target, re.split(", | with ", choice.title)[0])
        return titles

    async def on_weighed(self) -> Any:
        """Offer the targets that can run, once it is known which."""
        await until_weighed(self._loading)
        titles = self._titles()
        choices = [(title, target) for target, title in titles.items()]
        return gr.update(choices=choices, value=next(iter(titles), None))

    async def on_follow(self, request: gr.Request) -> AsyncIterator[Any]:
        """Stream the results as they come."""
        sweeping = self._sweeps.of(request.session_hash or "")
        if sweeping is None or sweeping.followed:
            yield gr.skip()
            return
        async for shown in follow(sweeping):
            yield shown

    def on_rest(self, request: gr.Request) -> dict[Any, Any]:
        """The buttons once a sweep is over."""
        sweeping = self._last(request.session_hash or "")
        going = sweeping is not None and not sweeping.over
        return {
            self.run: gr.update(value="Running" if going else "Run sweep", interactive=not going),
            self.stop: gr.update(interactive=going),
            self.advise: self._advise(sweeping),
        }

    def _advise(self, sweeping: Sweeping | Opened | None) -> Any:
        """The button under an advice that nobody has measured yet."""
        advice = sweeping.diagnosis.advice if sweeping and sweeping.diagnosis else None
        if advice is None or advice.setup is None or advice.measured is not None:
            return gr.update(visible=False)
        return gr.update(value=f"Measure the advice: gamma {advice.setup.gamma}", visible=True)

    def on_stop(self, request: gr.Request) -> Any:
        """Stop within one round. The stream of the sweep shows the end."""
        sweeping = self._sweeps.of(request.session_hash or "")
        if sweeping is not None:
            sweeping.unwanted.set()
        return gr.update(interactive=False)

    def on_open(self, path: str | None, request: gr.Request) -> dict[Any, Any]:
        """Show a file of a sweep. Needs no model; Run goes on with it where settings agree."""
        session = request.session_hash or ""
        try:
            with upload(path) as file:
                opened = Opened(file, self._files.path(session, "specviz-sweep-opened.json"))
        except (JournalError, OSError) as error:
            last = self._last(session)
            text = f"This file cannot be opened: {error}"
            return {self.results: view(text, "error", last.results if last else None)}
        self._sweeps.put(session, opened)
        return {self.results: opened.view, self.advise: self._advise(opened)}

    def on_back(self, request: gr.Request) -> dict[Any, Any]:
        """Show the visitor's sweep on a page that was loaded anew."""
        sweeping = self._last(request.session_hash or "")
        if sweeping is None:
            return {self.run: gr.skip()}
        sweeping.followed = sweeping.over
        return {self.results: sweeping.view, **self.on_rest(request)}

    def on_csv(self, request: gr.Request) -> str:
        """Write the table to a file of the visitor's own."""
        session = request.session_hash or ""
        return str(self._files.write(session, "specviz-sweep.csv", self._ended(session).csv()))

    def on_json(self, request: gr.Request) -> str:
        """The file with every round, which Open and ``specviz bench`` read."""
        path = self._ended(request.session_hash or "").path
        if not path.exists():
            raise gr.Error("There is no sweep to save yet.", print_exception=False)
        return str(path)

    def _last(self, session: str) -> Sweeping | Opened | None:
        """The visitor's last sweep that has begun or still may; one that was refused leaves the
        one before it."""
        sweeping = self._sweeps.of(session)
        return None if sweeping is None else sweeping.last

    def _ended(self, session: str) -> Sweeping | Opened:
        sweeping = self._last(session)
        if sweeping is None or not sweeping.over:
            raise gr.Error("There is no finished sweep to save yet.", print_exception=False)
        return sweeping


def _plan(wanted: Wanted, pairs: dict[str, Any], more: tuple[Setup, ...]) -> Plan:
    """The grid of what the loaded pairs can run. Raises PlanError."""
    known = [source for source in sources(pairs) if source[0] in wanted.drafters]
    if not known:
        raise PlanError(f"{wanted.target} can run none of the chosen drafters; choose others")
    setups = dict.fromkeys([*cross(known, **wanted.axes), *more])
    return Plan(wanted.target, tuple(setups), wanted.prompts, wanted.settings, wanted.repeats)
