// The short form beside the token under the pointer or the keyboard.

import { el, setHidden, setText } from "./dom.js";
import { visible } from "./format.js";
import { place } from "./tooltip.js";
import { shortForm } from "./words.js";

export function createPointerTip(root, { selection, find, span }) {
  const text = el("b", {});
  const rest = el("span", {});
  const tip = el("span", { class: "sv-tip sv-tip-token", "aria-hidden": "true" }, text, rest);
  tip.hidden = true;
  root.append(tip);
  let shown = null;

  function render() {
    const key = selection.pointed();
    const owner = span(key);
    const there = owner !== null && owner.getClientRects().length > 0;
    const now = there ? key : null;
    if (now === shown) return;
    shown = now;
    setHidden(tip, !there);
    if (!there) return;
    const found = find(key);
    setText(text, visible(found.token.text || found.token.label || "") || "\u00b7");
    setText(rest, shortForm(found));
    place(root, owner, tip);
  }

  return { render };
}
