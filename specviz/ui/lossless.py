"""The Lossless tab: three proofs that the text is the target's own, and what breaks it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import gradio as gr

from specviz import drafters
from specviz.host import OWN_MACHINE, Host
from specviz.lossless import RIGHT, SAMPLED_PROMPT, VERIFYING
from specviz.records import Settings, SettingsError
from specviz.ui.controls import OTHER, Controls
from specviz.ui.elements import QUIET, element
from specviz.ui.engine import import_engine
from specviz.ui.law import law, lead, proof_head, way_of_verifying
from specviz.ui.loading import Shelf
from specviz.ui.proving import Event, Progress, Proofs, Proving, follow
from specviz.ui.returning import Returning
from specviz.ui.turns import Turns

PROOF_HTML = '<div class="proof"></div>'
PROOF_JS = """
const mount = () => {
  const proof = window.specviz.mountProof(element, props.kind);
  watch("value", () => proof.show(props.value || ""));
  proof.show(props.value || "");
  element.dataset.mounted = "";
};
if (window.specviz?.mountProof) mount();
else window.addEventListener("specviz-ready", mount, { once: true });
"""
DEFAULT_PROMPT = "Write a short story about a lighthouse keeper."
OF_VARIANT = ("exact", "sampled")
"""The proofs that go with the chosen way of verifying."""


class Lossless:
    """One page's Lossless tab. ``controls`` are Explore's: the models chosen there are used."""

    def __init__(
        self,
        shelf: Shelf,
        pairs: dict[str, tuple[str, str]],
        turns: Turns,
        controls: Controls,
        host: Host = OWN_MACHINE,
    ) -> None:
        self._shelf, self._pairs, self._turns = shelf, pairs, turns
        self._controls, self._host = controls, host
        self._proofs = Proofs()

    # --- what it looks like ----------------------------------------------------------------

    def draw(self) -> None:
        """Put the tab into the block that is open."""
        with gr.Column(elem_id="lossless"):
            lead()
            self._draw_exact()
            self._draw_sampled()
            self._draw_greedy()

    def _draw_exact(self) -> None:
        with gr.Column(elem_classes="proof-section"):
            proof_head("exact")
            self.variant = way_of_verifying()
            self.law = law()
            with gr.Row(elem_classes="proof-actions"):
                self.run_exact = gr.Button(
                    "Prove it on the loop", variant="primary", elem_id="prove-exact"
                )
            self.exact = element("", PROOF_HTML, PROOF_JS, "proof-exact", kind="exact")

    def _draw_sampled(self) -> None:
        with gr.Column(elem_classes="proof-section"):
            proof_head("sampled")
            with gr.Row(elem_classes="proof-controls"):
                self.prompt = gr.Textbox(
                    SAMPLED_PROMPT,
                    label="Text to continue",
                    lines=1,
                    max_lines=4,
                    elem_id="sampled-prompt",
                )
                names = list(drafters.described())
                self.drafter = gr.Dropdown(
                    names, value=names[0], label="Guesses come from", elem_id="sampled-drafter"
                )
            with gr.Row(elem_classes="proof-controls"):
                self.n = gr.Slider(
                    20, 400, 100, step=10, label="Continuations of each", elem_id="samples"
                )
                self.tokens = gr.Slider(
                    1, 3, 2, step=1, label="First tokens compared", elem_id="compared"
                )
                self.temperature = gr.Slider(
                    0.1, 2, 0.8, step=0.1, label="Temperature", elem_id="sampled-temperature"
                )
            with gr.Row(elem_classes="proof-actions"):
                self.run_sampled = gr.Button(
                    "Draw and compare", variant="primary", elem_id="prove-sampled"
                )
                self.stop_sampled = gr.Button("Stop", elem_id="stop-sampled")
            self.sampled = element("", PROOF_HTML, PROOF_JS, "proof-sampled", kind="sampled")

    def _draw_greedy(self) -> None:
        with gr.Column(elem_classes="proof-section"):
            proof_head("greedy")
            with gr.Row(elem_classes="proof-controls"):
                self.greedy_prompt = gr.Textbox(
                    DEFAULT_PROMPT, label="Prompt", lines=1, max_lines=4, elem_id="greedy-prompt"
                )
                most = min(256, self._host.max_new_tokens)
                self.greedy_tokens = gr.Slider(
                    1, max(2, most), min(64, most), step=1, label="Tokens", elem_id="greedy-tokens"
                )
                self.dtype = gr.Radio(
                    [("as on Explore", "auto"), "float32"],
                    value="float32",
                    label="Number format",
                    elem_id="greedy-dtype",
                )
            with gr.Row(elem_classes="proof-actions"):
                self.run_greedy = gr.Button(
                    "Decode and compare", variant="primary", elem_id="prove-greedy"
                )
                self.stop_greedy = gr.Button("Stop", elem_id="stop-greedy")
            self.greedy = element("", PROOF_HTML, PROOF_JS, "proof-greedy", kind="greedy")

    # --- what happens ----------------------------------------------------------------------

    def wire(self, returning: Returning) -> None:
        """Connect the events."""
        about, shown = [self.variant, self.law], [self.exact, self.sampled, self.greedy]
        changed = [*about, self.exact, self.sampled]
        self.variant.input(self.on_variant, self.variant, changed, queue=False, **QUIET)
        models = [getattr(self._controls, name) for name in ("pair", "target", "draft", "dtype")]
        gamma = self._controls.gamma
        long: dict[str, Any] = QUIET | {"concurrency_id": "proofs", "concurrency_limit": 64}
        self.run_exact.click(self.on_exact, self.variant, self.exact, **long)
        self.run_sampled.click(
            self.on_sampled,
            [*models, gamma, self.variant, self.prompt, self.drafter, self.n, self.tokens,
             self.temperature],
            self.sampled,
            **long,
        )  # fmt: skip
        self.run_greedy.click(
            self.on_greedy,
            [*models, gamma, self.greedy_prompt, self.greedy_tokens, self.dtype],
            self.greedy,
            **long,
        )
        for button in (self.stop_sampled, self.stop_greedy):
            button.click(self.on_stop, queue=False, **QUIET)
        back = returning.back(self.on_back, None, about, queue=False, **QUIET)
        back.success(self.on_follow, None, shown, **long)
        returning.keep(self._proofs)

    def on_variant(self, name: str, request: gr.Request) -> dict[Any, Any]:
        """Verify in another way. What was proved of the way before is put away."""
        self._proofs.put_away(request.session_hash or "", OF_VARIANT)
        return {**self._variant(name), self.exact: "", self.sampled: ""}

    async def on_exact(self, name: str, request: gr.Request) -> AsyncIterator[str]:
        """Enumerate every path of the loop."""

        def events(_: Progress) -> Iterator[Event]:
            import_engine()
            from specviz.ui.proofs import exact_events

            yield from exact_events(name)

        proving = Proving(events, variant=name)
        async for log in self._follow("exact", proving, request):
            yield log

    async def on_sampled(
        self,
        pair: str,
        target: str,
        draft: str,
        dtype: str,
        gamma: int,
        variant: str,
        prompt: str,
        drafter: str,
        n: int,
        tokens: int,
        temperature: float,
        request: gr.Request,
    ) -> AsyncIterator[str]:
        """Draw continuations in both arms and compare them."""

        def events(progress: Progress) -> Iterator[Event]:
            import_engine()
            from specviz.lossless.sampled import Plan
            from specviz.ui.proofs import sampled_events

            settings = Settings(gamma=int(gamma), temperature=float(temperature), chat=False)
            plan = Plan(self._prompt(prompt, int(tokens)), settings, int(n), int(tokens))
            loaded = self._load(pair, target, draft, dtype, progress)
            yield from sampled_events(loaded, plan, drafter, variant)

        proving = Proving(events, self._turns, variant)
        async for log in self._follow("sampled", proving, request):
            yield log

    async def on_greedy(
        self,
        pair: str,
        target: str,
        draft: str,
        explore_dtype: str,
        gamma: int,
        prompt: str,
        tokens: int,
        dtype: str,
        request: gr.Request,
    ) -> AsyncIterator[str]:
        """Decode greedily in both ways, with every drafter there is, and compare."""

        def events(progress: Progress) -> Iterator[Event]:
            import_engine()
            from specviz.ui.proofs import greedy_events

            asked = self._prompt(prompt, int(tokens))
            settings = Settings(gamma=int(gamma), max_new_tokens=int(tokens))
            number = explore_dtype if dtype == "auto" else dtype
            loaded = self._load(pair, target, draft, number, progress)
            yield from greedy_events(loaded, asked, settings, progress)

        async for log in self._follow("greedy", Proving(events, self._turns), request):
            yield log

    def on_stop(self, request: gr.Request) -> None:
        """End the visitor's proof. What it found stays."""
        for proving in self._proofs.own(request.session_hash or "").values():
            proving.unwanted.set()

    def on_back(self, request: gr.Request) -> dict[Any, Any]:
        """Show what the visitor's proofs are about on a page that was loaded anew."""
        proofs = self._proofs.own(request.session_hash or "")
        about = [proofs[kind].variant for kind in OF_VARIANT if kind in proofs]
        return self._variant(about[0] if about else RIGHT)

    async def on_follow(self, request: gr.Request) -> AsyncIterator[dict[Any, Any]]:
        """Show the visitor's proofs on a page that was loaded anew, and the rest of the one that
        goes on."""
        proofs = self._proofs.own(request.session_hash or "")
        going = [kind for kind, proving in proofs.items() if not proving.over]
        logs = {getattr(self, kind): proving.log for kind, proving in proofs.items()}
        yield logs or {self.exact: gr.skip()}
        for kind in going:
            async for log in follow(proofs[kind]):
                yield {getattr(self, kind): log}

    async def _follow(self, kind: str, proving: Proving, request: gr.Request) -> AsyncIterator[str]:
        self._proofs.begin(request.session_hash or "", kind, proving)
        async for log in follow(proving):
            yield log

    def _variant(self, name: str) -> dict[Any, Any]:
        """The updates that show a way of verifying as the chosen one."""
        return {self.variant: gr.update(value=name, info=VERIFYING[name]), self.law: name}

    def _prompt(self, text: str, tokens: int) -> str:
        """The text to continue by so many tokens. Raises SettingsError."""
        if not (text or "").strip():
            raise SettingsError("The prompt is empty. Write something to continue.")
        self._host.check(text, tokens)
        return text

    def _load(self, pair: str, target: str, draft: str, dtype: str, progress: Progress) -> Any:
        """The models chosen on Explore. Raises SettingsError where none are."""
        if pair != OTHER or OTHER not in self._pairs:
            target, draft = self._pairs.get(pair, ("", ""))
        if not (target or "").strip():
            raise SettingsError("No target is chosen. Pick a pair on Explore.")
        return self._shelf.load(target.strip(), (draft or "").strip(), dtype, progress=progress)
