// The card of the guessing game: the question, what became of the last guess, and the score.

import { el, setAttr, setHidden } from "./dom.js";
import { nameOf, verdict } from "./words.js";

export function createPredictCard(root, { predict, find, actions, announce }) {
  const card = root.querySelector(".sv-predict");
  let shown = "";
  let said = "";

  function render() {
    const { on, question, last, asked, right } = predict.state;
    setHidden(card, !on);
    setAttr(root, "data-predict", on ? "on" : null);
    if (!on) return reset();
    const asking = predict.isAsking();
    const state = [
      asking,
      question?.round,
      question?.token,
      last?.round,
      last?.token,
      asked,
      right,
    ];
    if (state.join() === shown) return;
    shown = state.join();
    const held = card.contains(document.activeElement);
    card.replaceChildren(...(asking ? questionParts() : betweenParts()));
    if (held) card.querySelector(".sv-answer")?.focus({ preventScroll: true });
  }

  function reset() {
    shown = said = "";
  }

  function questionParts() {
    const { round, token } = predict.state.question;
    const found = find(keyIn(round, token));
    const words =
      "Round " + (round + 1) + ", guess " + (token + 1) + ": " + nameOf(found.token) + ".";
    tell(words + " Kept or thrown away?");
    return [
      head("Kept or thrown away?"),
      el("p", { class: "sv-asked" }, words),
      el(
        "div",
        { class: "sv-answers" },
        button("Kept", "K", "sv-say-kept", () => actions.say(true)),
        button("Thrown away", "X", "sv-say-thrown", () => actions.say(false)),
      ),
      score(),
    ];
  }

  function betweenParts() {
    const { question, last } = predict.state;
    const next = question
      ? button("Next question", "space", "sv-next", () => actions.nextQuestion())
      : null;
    if (!last)
      return [head("Guess the verdicts"), nothing(question), next, score()].filter(Boolean);
    const found = find(keyIn(last.round, last.token));
    const outcome = last.right ? "Right." : "Wrong.";
    tell(outcome + " " + verdict(found) + " " + scoreText());
    return [
      head(outcome),
      el("p", { class: "sv-asked" }, verdict(found)),
      question ? null : nothing(question),
      next,
      score(),
    ].filter(Boolean);
  }

  function nothing(question) {
    const words = question
      ? "Each verdict is hidden until you have said what it will be."
      : predict.hasMore()
        ? "The next guesses are still being computed."
        : "There are no more verdicts to guess in this run.";
    return el("p", { class: "sv-muted" }, words);
  }

  const keyIn = (round, token) => predict.lane() + ":" + round + ":" + token;

  function scoreText() {
    const { asked, right } = predict.state;
    return asked === 0 ? "No guesses yet." : right + " of " + asked + " right.";
  }

  const score = () => el("p", { class: "sv-score" }, scoreText());

  function head(text) {
    const stop = el(
      "button",
      { type: "button", class: "sv-quiet", onclick: () => actions.predict() },
      "Stop",
    );
    return el("header", { class: "sv-front-head" }, el("h3", {}, text), stop);
  }

  function tell(text) {
    if (text === said) return;
    said = text;
    announce(text);
  }

  return { render };
}

function button(text, key, kind, onclick) {
  return el(
    "button",
    { type: "button", class: "sv-answer " + kind, onclick },
    text,
    el("kbd", { "aria-hidden": "true" }, key),
  );
}
