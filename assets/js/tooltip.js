// One sentence on hover, focus and tap. Stays while the pointer is on it; Escape closes it.

import { el, setAttr, uniqueId } from "./dom.js";

const GAP = 8;

export function attachTip(root, owner, sentence) {
  if (!sentence) return null;
  const tip = el("span", { class: "sv-tip", role: "tooltip", id: uniqueId("tip") });
  tip.textContent = sentence;
  tip.hidden = true;
  root.append(tip);
  setAttr(owner, "aria-describedby", tip.id);

  let leaving = 0;
  const show = () => {
    clearTimeout(leaving);
    if (!tip.hidden) return;
    tip.hidden = false;
    place(root, owner, tip);
  };
  const hide = () => {
    clearTimeout(leaving);
    tip.hidden = true;
  };
  const hideSoon = () => {
    leaving = setTimeout(hide, 120);
  };
  for (const element of [owner, tip]) {
    element.addEventListener("pointerenter", (event) => event.pointerType !== "touch" && show());
    element.addEventListener(
      "pointerleave",
      (event) => event.pointerType !== "touch" && hideSoon(),
    );
  }
  owner.addEventListener("focus", () => owner.matches(":focus-visible") && show());
  owner.addEventListener("blur", hide);
  owner.addEventListener("click", () => show());
  owner.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || tip.hidden) return;
    hide();
    event.stopPropagation();
  });
  return { set: (text) => (tip.textContent = text) };
}

// Under the owner, or above it where there is no room; always inside the stage.
export function place(root, owner, tip) {
  const frame = root.getBoundingClientRect();
  const anchor = owner.getBoundingClientRect();
  tip.style.left = "0px";
  tip.style.top = "0px";
  const size = tip.getBoundingClientRect();
  const centred = anchor.left + anchor.width / 2 - size.width / 2;
  const left = Math.min(Math.max(centred, frame.left), frame.right - size.width);
  const below = anchor.bottom + GAP;
  const fits = below + size.height <= window.innerHeight || anchor.top < size.height + GAP;
  const top = fits ? below : anchor.top - size.height - GAP;
  tip.style.left = left - frame.left + "px";
  tip.style.top = top - frame.top + "px";
}
