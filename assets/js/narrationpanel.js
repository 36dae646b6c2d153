// The column that says what is happening: folded or open, at one of three levels. While the run
// moves it changes twice a second at most, so that it can be read.

import { el, setAttr, setHidden, setText } from "./dom.js";
import { LEVELS, momentOf, narrate } from "./narration.js";

const MOVING_MS = 500;

export function createNarration(root, { model, memory, actions, predict, look }) {
  const panel = root.querySelector(".sv-narration");
  const title = el("h4", { class: "sv-moment" });
  const lines = el("div", { class: "sv-lines" });
  const buttons = LEVELS.map(([name, label]) => levelButton(name, label));
  const fold = el(
    "button",
    { type: "button", class: "sv-fold", "aria-expanded": "true", onclick: () => toggle() },
    "What is happening",
  );
  const levels = el(
    "div",
    { class: "sv-levels", role: "group", "aria-label": "Level" },
    ...buttons,
  );
  const walkButton = quiet("Guided walk", () => actions.walk());
  const guessButton = quiet("Guess the verdicts", () => actions.predict());
  const body = el("div", { class: "sv-narration-body" }, title, lines, levels);
  panel.append(
    el("header", { class: "sv-narration-head" }, fold),
    body,
    el("div", { class: "sv-teach" }, walkButton, guessButton),
  );
  let level = LEVELS.some(([name]) => name === memory.get("level"))
    ? memory.get("level")
    : "newcomer";
  let open = memory.get("narration") !== "folded";
  let openOnStage = false; // in presentation mode it is folded until asked for
  let shown = "";
  let changedAt = -Infinity;
  showState();

  function levelButton(name, label) {
    const button = el("button", { type: "button", class: "sv-level" }, label);
    button.addEventListener("click", () => setLevel(name));
    return button;
  }

  function setLevel(name) {
    level = name;
    memory.set("level", name);
    if (!isOpen()) toggle();
    showState();
    actions.refresh();
  }

  function onStage() {
    return root.classList.contains("sv-present");
  }

  function isOpen() {
    return onStage() ? openOnStage : open;
  }

  function toggle() {
    if (onStage()) openOnStage = !openOnStage;
    else {
      open = !open;
      memory.set("narration", open ? "open" : "folded");
    }
    showState();
    if (onStage() && isOpen()) panel.scrollIntoView({ block: "nearest" });
    actions.refresh();
  }

  function showState() {
    setAttr(fold, "aria-expanded", isOpen());
    setHidden(body, !isOpen());
    setAttr(root, "data-narration", isOpen() ? "open" : "folded");
    buttons.forEach((button, i) => setAttr(button, "aria-pressed", LEVELS[i][0] === level));
    shown = "";
  }

  function render(frame) {
    setText(guessButton, predict.state.on ? "Stop guessing" : "Guess the verdicts");
    if (fold.getAttribute("aria-expanded") !== String(isOpen())) showState();
    if (!isOpen()) return;
    const { found, decision } = look(frame);
    const moment = momentOf(found, decision, frame, model);
    const now = performance.now();
    if (moment.kind === "moving" && frame.moving && now - changedAt < MOVING_MS) return;
    const said = narrate(moment, level);
    const state = [level, said.title, ...said.lines].join("\n");
    if (state === shown) return;
    shown = state;
    changedAt = now;
    setText(title, said.title);
    lines.replaceChildren(...said.lines.map((line) => el("p", { class: "sv-said" }, line)));
    setAttr(lines, "data-level", level);
  }

  return {
    render,
    toggle,
    setLevel: (number) => setLevel(LEVELS[number - 1][0]),
  };
}

function quiet(text, onclick) {
  return el("button", { type: "button", class: "sv-quiet", onclick }, text);
}
