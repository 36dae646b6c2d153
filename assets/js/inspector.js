// Everything about one token, or, right after a target call, about all the guesses it scored.

import { el } from "./dom.js";
import { count, milliseconds, probability } from "./format.js";
import { candidates, copied, numberLine, numbers, residual } from "./evidence.js";
import { keyOf } from "./model.js";
import { FATES, nameOf, verdict } from "./words.js";

export function createInspector(root, { model, playhead, selection, find, actions }) {
  const panel = root.querySelector(".sv-inspector");
  let shown = null;

  function render(frame) {
    const chosen = selection.active();
    const decision = chosen || !frame.resting ? null : frame.decision;
    const key = chosen ?? restingKey(decision);
    const found = key ? find(key) : null;
    const state = [
      key,
      decision?.kind,
      found?.state,
      found?.verified,
      selection.pinned() !== null,
      frame.phase,
    ].join("|");
    if (state === shown) return;
    shown = state;
    panel.replaceChildren(...content(found, decision, frame));
  }

  function content(found, decision, frame) {
    if (found) return describe(found, decision);
    if (decision?.kind === "verify" && decision.round.drafted > 0)
      return targetCall(decision.round);
    return hint(frame);
  }

  function describe(found, decision) {
    return [
      header(found, decision),
      numbers(found),
      numberLine(found),
      el("p", { class: "sv-verdict" }, verdict(found)),
      copied(found, model),
      candidates(found),
      residual(found),
    ].filter(Boolean);
  }

  function header({ token, round, state }, decision) {
    const place = (round.lane === "baseline" ? "baseline, call " : "round ") + (round.index + 1);
    const fate = state ?? token.fate;
    return el(
      "header",
      { class: "sv-panel-head" },
      el("span", { class: "sv-panel-token", title: "token id " + token.id }, nameOf(token)),
      el("span", { class: "sv-badge", "data-f": fate }, FATES[fate].name),
      el("span", { class: "sv-panel-place" }, place + ", token id " + token.id),
      selection.pinned() !== null
        ? el(
            "button",
            { type: "button", class: "sv-quiet sv-unpin", onclick: () => actions.unpin() },
            "Unpin",
          )
        : el("span", { class: "sv-panel-place" }, decision ? decisionPlace() : "click pins it"),
    );
  }

  function decisionPlace() {
    return playhead.step === null ? "last decision" : "decision " + playhead.step;
  }

  return {
    render,
    reset() {
      shown = null;
    },
  };
}

// With nothing chosen: the last decision while paused; nothing while the text runs.
function restingKey(decision) {
  if (!decision || decision.token === null) return null;
  return keyOf(decision.round, decision.token);
}

function hint(frame) {
  const text =
    frame.figures === null && frame.decision === null
      ? "When a token is on screen, this shows why it was kept or thrown away."
      : "Point at a token to see why it was kept or thrown away. Click to pin it.";
  return [el("h3", { class: "sv-panel-title" }, "Inspector"), el("p", { class: "sv-muted" }, text)];
}

// The moment after the call: p is known at every place, nothing is decided yet.
function targetCall(round) {
  const words =
    "One call of the target, " +
    milliseconds(round.verifyEnd - round.draftEnd) +
    ", scored " +
    count(round.drafted, "guess", "guesses") +
    " and the place behind them. Drafting had taken " +
    milliseconds(round.draftEnd - round.start) +
    ".";
  const rows = round.tokens
    .slice(0, round.drafted)
    .map((token) =>
      el(
        "li",
        { class: "sv-candidate" },
        el("span", { class: "sv-candidate-text" }, nameOf(token)),
        el("span", {}),
        el("span", { class: "sv-candidate-p" }, "p " + probability(token.p)),
        el("span", { class: "sv-candidate-q" }, "q " + probability(token.q)),
      ),
    );
  return [
    el("h3", { class: "sv-panel-title" }, "Round " + (round.index + 1) + ": the target call"),
    el("p", { class: "sv-verdict" }, words),
    el("ol", { class: "sv-candidates" }, ...rows),
  ];
}
