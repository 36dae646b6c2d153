"""The law of one token, moved by hand: exact, by arithmetic in the browser, without any model."""

from __future__ import annotations

import gradio as gr

from specviz.lossless import PROOFS, RIGHT, VERIFYING
from specviz.ui.elements import ASSETS, element

LEAD = """
## Is it really the same text?
Speculative decoding must not change what the target writes, not even a little. Three proofs, from
pure arithmetic to the real models, and five mistakes that break it.
"""
LAW_JS = """
const mount = () => {
  const law = window.specviz.mountLaw(element, { variants: props.variants });
  watch("value", () => law.show(props.value));
  law.show(props.value);
  element.dataset.mounted = "";
};
if (window.specviz?.mountLaw) mount();
else window.addEventListener("specviz-ready", mount, { once: true });
"""
TITLES = {"exact": "1. Exact", "sampled": "2. Sampled", "greedy": "3. Greedy"}


def lead() -> None:
    """What the tab is about, into the block that is open."""
    gr.Markdown(LEAD, elem_classes="lead")


def proof_head(name: str) -> None:
    """What a proof does, shows and leaves open, into the block that is open."""
    proof = next(proof for proof in PROOFS if proof.name == name)
    gr.Markdown(
        f"### {TITLES[name]}\n{proof.does}\n\n**It shows:** {proof.shows}\n\n"
        f"**It leaves open:** {proof.leaves_open}",
        elem_classes="proof-head",
    )


def way_of_verifying() -> gr.Radio:
    """The choice between the right way and the wrong ones."""
    wrong = [name for name in VERIFYING if name != RIGHT]
    return gr.Radio(
        [(RIGHT, RIGHT), *((f"wrong: {name}", name) for name in wrong)],
        value=RIGHT,
        label="How a guess is verified",
        info=VERIFYING[RIGHT],
        elem_id="variant",
    )


def law() -> gr.HTML:
    """Two laws to drag, and what is written in the end. The value is the way of verifying."""
    template = (ASSETS / "law.html").read_text(encoding="utf-8")
    return element(RIGHT, template, LAW_JS, "law", variants=list(VERIFYING))
