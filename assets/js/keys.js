// All keys of the stage in one list: what the sheet shows and what is listened for are the same.
// They work while the stage has the focus and, when it is presented, wherever the focus is; those
// marked `anywhere` always do. Never while something is being typed.

import { el } from "./dom.js";

const key = (keys, action, meaning, more = {}) => ({ keys, action, meaning, ...more });

export const SECTIONS = [
  {
    title: "Play",
    rows: [
      key([" "], "toggle", "play or pause", { shown: ["space"] }),
      key(["ArrowLeft"], "previous", "previous round", { shown: ["\u2190"] }),
      key(["ArrowRight"], "next", "next round", { shown: ["\u2192"] }),
      key([","], "previousStep", "previous decision"),
      key(["."], "nextStep", "next decision"),
      key(["Home"], "start", "to the start", { shown: ["home"] }),
      key(["End"], "end", "to the end", { shown: ["end"] }),
      key(["j"], "jump", "go to a round by its number", { shown: ["J"] }),
      key(["-"], "slower", "slower"),
      key(["+", "="], "faster", "faster", { shown: ["+"] }),
      key(["r"], "realTime", "in real time", { shown: ["R"] }),
      key(["c"], "follow", "catch up with a live run", { shown: ["C"] }),
    ],
  },
  {
    title: "Look",
    rows: [
      key([], null, "to the text; arrows then go from token to token", { shown: ["tab"] }),
      key([], null, "pin the token", { shown: ["enter"] }),
      key(["t"], "thrown", "show or hide what was thrown away", { shown: ["T"] }),
      key(["z"], "zoom", "time axis: whole run or close up", { shown: ["Z"] }),
      key(["i"], "whatIf", "open what if", { shown: ["I"] }),
    ],
  },
  {
    title: "Explain",
    rows: [
      key(["n"], "narration", "what is happening, in words", { shown: ["N"] }),
      key(["1"], "level", "for newcomers", { values: [1] }),
      key(["2"], "level", "for practitioners", { values: [2] }),
      key(["3"], "level", "as formulas", { values: [3] }),
      key(["w"], "walk", "guided walk", { shown: ["W"] }),
      key(["g"], "predict", "guess the verdicts", { shown: ["G"] }),
      key(["k"], "say", "guess: kept", { shown: ["K"], values: [true] }),
      key(["x"], "say", "guess: thrown away", { shown: ["X"], values: [false] }),
    ],
  },
  {
    title: "Page",
    rows: [
      key(["p"], "present", "presentation", { shown: ["P"], anywhere: true }),
      key(["?"], "sheet", "this sheet", { anywhere: true }),
      key(["Escape"], "escape", "unpin, end the walk or the guessing, leave", { shown: ["esc"], anywhere: true }),
    ],
  },
];

const ROWS = SECTIONS.flatMap((section) => section.rows);

export function bindKeys(root, actions) {
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    if (!isShown(root) || isTyping(event.target)) return;
    const row = ROWS.find((one) => one.keys.includes(nameOf(event)));
    if (!row || !mayUse(row, root, event)) return;
    const action = event.shiftKey && row.action in SHIFTED ? SHIFTED[row.action] : row.action;
    if (actions[action](...(row.values ?? [])) !== false) event.preventDefault();
  });
}

const SHIFTED = { previous: "previousStep", next: "nextStep" };
const nameOf = (event) => (event.key.length === 1 ? event.key.toLowerCase() : event.key);
const isShown = (root) => root.getClientRects().length > 0;

function isTyping(target) {
  return (
    target instanceof Element &&
    target.closest("input:not([type=range]), textarea, select, [contenteditable=true]") !== null
  );
}

// What the focused control itself does with a key comes first.
function mayUse(row, root, event) {
  const target = event.target instanceof Element ? event.target : document.body;
  if (target.closest("dialog")) return row.action === "sheet";
  const here = root.contains(target) || root.classList.contains("sv-present");
  if (!here && !row.anywhere) return false;
  if (event.key === " ") return target.closest("button, summary") === null;
  return !(target.matches("input[type=range]") && /^(Arrow|Home|End)/.test(event.key));
}

export function fillSheet(sheet) {
  const close = el(
    "button",
    { type: "button", class: "sv-quiet sv-sheet-close", onclick: () => sheet.close() },
    "Close",
  );
  const columns = SECTIONS.map(({ title, rows }) =>
    el("section", {}, el("h4", {}, title), el("dl", { class: "sv-keys" }, ...rows.flatMap(entry))),
  );
  const head = el("header", { class: "sv-front-head" }, el("h3", {}, "Keys"), close);
  sheet.append(head, el("div", { class: "sv-sheet-columns" }, ...columns));
  sheet.addEventListener("click", (event) => event.target === sheet && sheet.close());
  return sheet;
}

function entry({ keys, shown = keys, meaning }) {
  return [el("dt", {}, ...shown.map((name) => el("kbd", {}, name))), el("dd", {}, meaning)];
}
