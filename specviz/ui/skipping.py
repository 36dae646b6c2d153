"""Updates that skip an element must leave it as it is."""

from __future__ import annotations

from typing import Any

from gradio import blocks
from gradio.blocks import postprocess_update_dict as by_gradio


def skip_wholly() -> None:
    """Let an update that says nothing of a ``gr.HTML`` leave its properties alone. By itself Gradio
    sends the mark of an update among them, and a page that has not drawn the element yet takes that
    for all its properties: on a tab that is first visited later, its script then finds none."""
    blocks.postprocess_update_dict = _without_mark


def _without_mark(*given: Any, **how: Any) -> dict[str, Any]:
    update: dict[str, Any] = by_gradio(*given, **how)
    props = update.pop("props", {})
    props.pop("__type__", None)
    return {**update, "props": props} if props else update
