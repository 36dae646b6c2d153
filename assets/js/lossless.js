// The exact view: two laws to drag, the law that comes out, and the ways to get it wrong.

import { el, setText } from "./dom.js";
import { share } from "./format.js";
import { lawBars, writtenBars } from "./losslessbars.js";
import { firstTokenLaw, moved, overlap, residual, VARIANT_NAMES } from "./losslesslaw.js";

const TOKENS = ["sea", "fog", "lamp", "gull", "rock"];
const PRESETS = [
  ["A draft that is close", [0.4, 0.25, 0.2, 0.1, 0.05], [0.5, 0.2, 0.1, 0.15, 0.05]],
  ["A draft that is sure and wrong", [0.1, 0.4, 0.3, 0.15, 0.05], [0.85, 0.05, 0.05, 0.03, 0.02]],
  ["The same law twice", [0.4, 0.25, 0.2, 0.1, 0.05], [0.4, 0.25, 0.2, 0.1, 0.05]],
  ["Nothing in common", [0.6, 0.4, 0, 0, 0], [0, 0, 0.5, 0.3, 0.2]],
];
const EXACT = 1e-12;

export function mountLaw(element, { variants }) {
  const root = element.querySelector(".law");
  const state = { p: PRESETS[0][1], q: PRESETS[0][2], variant: variants[0] };
  const laws = lawBars(root.querySelector(".law-laws"), TOKENS, drag);
  const written = writtenBars(root.querySelector(".law-written"), TOKENS);
  const figures = figureList(root.querySelector(".law-figures"));
  const verdict = root.querySelector(".law-verdict");
  root.querySelector(".law-presets").append(
    ...PRESETS.map(([name, p, q]) =>
      el("button", { type: "button", class: "chip", onclick: () => set({ p, q }) }, name),
    ),
  );
  new ResizeObserver(draw).observe(root);

  function drag(which, index, value) {
    set({ [which]: moved(state[which], index, value) });
  }

  function set(change) {
    Object.assign(state, change);
    draw();
  }

  function draw() {
    if (root.clientWidth === 0) return;
    const { p, q, variant } = state;
    const law = firstTokenLaw(variant, p, q);
    laws.show(p, q);
    written.show(p, law);
    figures.show(p, q, law);
    setText(verdict, inWords(variant, law));
    verdict.dataset.holds = law.gap <= EXACT;
  }

  return {
    show: (name) => set({ variant: VARIANT_NAMES.includes(name) ? name : VARIANT_NAMES[0] }),
    state,
  };
}

function figureList(list) {
  const rows = ["accepted, the sum of min(p, q)", "left for the residual", "sum of what is written", "largest difference from p"];
  const values = rows.map((name) => {
    const value = el("dd", {});
    list.append(el("div", {}, el("dt", {}, name), value));
    return value;
  });

  function show(p, q, law) {
    const accepted = overlap(p, q);
    const total = law.written.reduce((a, b) => a + b, 0);
    const left = accepted > 1 - EXACT ? "nothing" : share(1 - accepted) + ": " + drawnFrom(p, q);
    const texts = [share(accepted), left, total.toFixed(3), gapText(law.gap)];
    values.forEach((value, i) => setText(value, texts[i]));
  }

  return { show };
}

function drawnFrom(p, q) {
  return residual(p, q)
    .map((value, i) => [TOKENS[i], value])
    .filter(([, value]) => value > EXACT)
    .map(([token, value]) => token + " " + share(value))
    .join(", ");
}

const gapText = (gap) => (gap <= EXACT ? "none, to 12 decimals" : gap.toFixed(3));

function inWords(variant, law) {
  if (variant === "right")
    return "Accepted guesses give each token min(p, q); the residual gives it exactly what is missing. Together that is p, wherever the bars are.";
  if (law.gap <= EXACT) return "With these two laws the mistake does not show. Move a bar.";
  return "This is no longer the target's law: some token is written too often, another too seldom.";
}
