// The what-if part of the inspector: another u, another gamma, and the expected number kept. It
// stays in place while the inspector around it changes, so that a slider keeps its focus.

import { el, setAttr, setHidden, setText } from "./dom.js";
import { count, share } from "./format.js";
import { keyOf } from "./model.js";
import { canVaryU, expectedAccepted, passingRules, withOtherGamma, withOtherU } from "./whatif.js";
import { isGreedy } from "./words.js";

const MORE = 2; // guesses a round can be made longer by

export function createWhatIf() {
  const u = slider("Another u", 0, 1, 0.01);
  const gamma = slider("Another gamma", 0, 1, 1);
  const note = el("p", { class: "sv-muted" });
  const rules = el("p", { class: "sv-rules" });
  const expected = el("p", { class: "sv-expected" });
  const element = el(
    "details",
    { class: "sv-whatif" },
    el("summary", {}, "What if"),
    note,
    u.element,
    gamma.element,
    expected,
    rules,
  );
  let found = null;
  let shown = "";

  u.input.addEventListener("input", () => say(u, withOtherU(found, Number(u.input.value))));
  gamma.input.addEventListener("input", () => {
    const value = Number(gamma.input.value);
    say(gamma, withOtherGamma(found.round, found.settings, value));
  });

  // `now` is a token of a round whose verdicts are all on screen, or null.
  function render(now) {
    const possible = now !== null && now.round.drafted > 0;
    setHidden(element, !possible);
    if (!possible) return;
    found = now;
    const state = keyOf(now.round, now.index) + now.state;
    if (state === shown) return;
    shown = state;
    showU();
    showGamma();
    setText(expected, expectedWords(now.round, now.settings));
    setText(rules, canVaryU(now) ? rulesWords(now.token) : "");
    setHidden(rules, rules.textContent === "");
  }

  function showU() {
    const varies = canVaryU(found);
    setHidden(u.element, !varies);
    setText(note, isGreedy(found.settings) ? "At temperature 0 no u is drawn." : "");
    setHidden(note, note.textContent === "");
    if (!varies) return;
    reset(u, found.token.u);
    say(u, withOtherU(found, found.token.u));
  }

  function showGamma() {
    setAttr(gamma.input, "max", found.round.drafted + MORE);
    reset(gamma, found.round.drafted);
    say(gamma, withOtherGamma(found.round, found.settings, found.round.drafted));
  }

  return {
    element,
    render,
    toggle: () => {
      element.open = !element.open;
      if (!element.open) return;
      element.scrollIntoView({ block: "nearest" });
      element.querySelector("summary").focus({ preventScroll: true });
    },
  };
}

function slider(name, min, max, step) {
  const value = el("b", {});
  const input = el("input", { type: "range", min, max, step, "aria-label": name });
  const words = el("span", {});
  const until = el("span", { class: "sv-until" });
  const said = el("output", { class: "sv-otherwise" }, words, until);
  const label = el("span", { class: "sv-slider-label" }, name, value);
  const element = el("div", { class: "sv-slider" }, label, input, said);
  return { element, input, value, words, until, whole: step === 1 };
}

function reset({ input }, value) {
  input.value = value;
}

function say({ input, value, words, until, whole }, answer) {
  const number = Number(input.value);
  setText(value, whole ? String(number) : number.toFixed(2));
  setText(words, answer.words);
  setText(until, answer.until);
  setHidden(until, answer.until === "");
}

function expectedWords(round, settings) {
  const opening = "Expected accepted of " + count(round.drafted, "guess", "guesses");
  if (isGreedy(settings))
    return opening + ": " + round.accepted + ". At temperature 0 chance has no part in it.";
  const bounds = expectedAccepted(round);
  if (bounds === null) return opening + ": \u2014. A p or q of this round was not recorded.";
  const { low, high } = bounds;
  if (high - low < 0.005) return opening + ", given their p and q: " + share(low) + ".";
  const open = count(round.drafted - round.tested, "discarded guess", "discarded guesses");
  const between = share(low) + " to " + share(high);
  return opening + ": " + between + ". The p of " + open + " was not recorded.";
}

function rulesWords(token) {
  const rules = passingRules(token);
  if (rules === null) return "";
  const least = rules.whole ? "" : "at least ";
  return (
    "Of all guesses the draft could make here, " +
    least +
    share(rules.ratio) +
    " pass by min(1, p/q); if the target had to draw the same token, " +
    least +
    share(rules.same) +
    " would."
  );
}
