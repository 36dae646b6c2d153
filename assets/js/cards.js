// The headline, the cards and, when a run is done, the row of facts beside them.

import { attachTip } from "./tooltip.js";
import { el, setHidden, setText } from "./dom.js";
import { DASH, rate, share, times } from "./format.js";
import { comparisonOfTexts, headline, whySlower } from "./headline.js";

const CARDS = [
  ["tar", "TAR", share, ""],
  ["alpha", "alpha", share, ""],
  ["tokens_per_target_call", "tokens per target call", share, ""],
  ["tokens_per_s", "speculative", rate, "tok/s"],
  ["baseline_tokens_per_s", "baseline", rate, "tok/s"],
];
const FACTS = [
  ["predicted_speedup", "predicted", times],
  ["efficiency", "efficiency", share],
  ["end_to_end_speedup", "end to end", times],
  ["cost_ratio", "c", share],
  ["verify_ratio", "v", share],
];

export function createCards(root, { model, definitions }) {
  const value = root.querySelector(".sv-headline-value");
  const words = root.querySelector(".sv-headline-words");
  const why = root.querySelector(".sv-why");
  const whyTip = attachTip(root, why, "Not known yet.");
  const meta = root.querySelector(".sv-meta");
  const facts = root.querySelector(".sv-facts");
  const same = el("span", { class: "sv-same" });
  attachTip(root, root.querySelector(".sv-headline"), definitions.speedup ?? "");
  const cards = CARDS.map((card) => addFigure(root.querySelector(".sv-cards"), card, "sv-card"));
  facts.append(same);
  const details = FACTS.map((fact) => addFigure(facts, fact, "sv-fact"));

  function addFigure(parent, [name, label, format, unit], kind) {
    const number = el("span", { class: kind + "-value" }, DASH);
    const button = el(
      "button",
      { type: "button", class: kind },
      el("span", { class: kind + "-label" }, label),
      el(
        "span",
        { class: kind + "-number" },
        number,
        unit ? el("span", { class: "sv-unit" }, " " + unit) : null,
      ),
    );
    parent.append(button);
    attachTip(root, button, definitions[name] ?? "");
    return { name, number, format };
  }

  function show(list, figures) {
    for (const { name, number, format } of list) {
      const text = format(figures?.[name]);
      setText(number, text);
      number.classList.toggle("sv-none", text === DASH);
    }
  }

  function render(frame) {
    const { value: shown, words: said } = headline(frame, model);
    setText(value, shown);
    setText(words, said);
    value.classList.toggle("sv-none", shown === DASH);
    show(cards, frame.figures);
    const done = model.done !== null && frame.atEnd && Boolean(model.lanes.baseline);
    const reason = done ? whySlower(model.done.figures) : null;
    setHidden(facts, model.start === null);
    setHidden(why, reason === null);
    if (reason) whyTip.set(reason);
    setText(meta, done ? "" : describeRun(model.start));
    setHidden(meta, done);
    setText(same, done ? comparisonOfTexts(model.done, model.start?.settings) : "");
    setHidden(same, same.textContent === "");
    for (const { number } of details) setHidden(number.closest("button"), !done);
    if (done) show(details, model.done.figures);
  }

  return { render };
}

// What is being run, in one line.
function describeRun(start) {
  if (!start) return "";
  const { temperature, seed } = start.settings;
  const heat = temperature ? "temperature " + temperature + ", seed " + seed : "greedy";
  const mode = start.mode === "replay" ? "recorded run" : "live run";
  const drafter = start.drafter + ", " + draftLength(start.settings);
  return [mode, start.pair.name, drafter, heat, ...describeMachine(start.machine)]
    .filter(Boolean)
    .join("  \u00b7  ");
}

// Device and dtype, and on a GPU whether steps were replayed as CUDA graphs, or why not.
function describeMachine(machine) {
  const graphs = machine?.versions?.["CUDA graphs"];
  return [
    machine?.device && machine.device + ", " + machine.dtype,
    graphs && "CUDA graphs: " + graphs,
  ];
}

function draftLength({ gamma, schedule, confidence }) {
  return (
    "gamma " +
    gamma +
    (schedule === "adaptive" ? " at first, adaptive" : "") +
    (confidence > 0 ? ", confidence " + confidence : "")
  );
}
