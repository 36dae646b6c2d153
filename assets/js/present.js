// Presentation mode and the sheet of keys. Both answer to keys anywhere on the page, as a speaker
// has no patience for focus, but never while something is being typed.

import { el } from "./dom.js";

const KEYS = [
  [["space"], "play or pause"],
  [["\u2190", "\u2192"], "previous and next round"],
  [[",", "."], "previous and next decision"],
  [["home", "end"], "to the start, to the end"],
  [["tab"], "to the text; arrows then go from token to token"],
  [["enter"], "pin the token"],
  [["esc"], "unpin, close, leave"],
  [["P"], "presentation: the stream, the headline and the inspector, large"],
  [["?"], "this sheet"],
];

export function createPresentation(root, { actions }) {
  const sheet = fillSheet(root.querySelector(".sv-sheet"));

  // The top layer is above whatever the page around the stage does with stacking.
  function enter() {
    root.classList.add("sv-present");
    root.setAttribute("popover", "manual");
    root.showPopover();
    root.focus();
    actions.refresh();
  }

  function leave() {
    root.hidePopover();
    root.removeAttribute("popover");
    root.classList.remove("sv-present");
    root.focus();
    actions.refresh();
  }

  const isOn = () => root.classList.contains("sv-present");
  const toggle = () => (isOn() ? leave() : enter());

  root.querySelector(".sv-present-button").addEventListener("click", toggle);
  root.querySelector(".sv-sheet-button").addEventListener("click", () => sheet.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    if (isTyping(event.target) || !isShown(root)) return;
    if (event.key === "p" || event.key === "P") toggle();
    else if (event.key === "?") sheet.open ? sheet.close() : sheet.showModal();
    else if (event.key === "Escape" && isOn() && !sheet.open) leave();
  });
}

function isTyping(target) {
  return (
    target instanceof Element &&
    target.closest("input:not([type=range]), textarea, select, [contenteditable=true]") !== null
  );
}

const isShown = (root) => root.getClientRects().length > 0;

function fillSheet(sheet) {
  const rows = KEYS.flatMap(([keys, meaning]) => [
    el("dt", {}, ...keys.map((key) => el("kbd", {}, key))),
    el("dd", {}, meaning),
  ]);
  const close = el(
    "button",
    { type: "button", class: "sv-quiet sv-sheet-close", onclick: () => sheet.close() },
    "Close",
  );
  sheet.append(el("h3", {}, "Keys"), el("dl", { class: "sv-keys" }, ...rows), close);
  sheet.addEventListener("click", (event) => event.target === sheet && sheet.close());
  return sheet;
}
