// Everything about one token, or, right after a target call, about all the guesses it scored.

import { el } from "./dom.js";
import { count, milliseconds, probability } from "./format.js";
import { copied } from "./copied.js";
import { candidates, numberLine, numbers, residual } from "./evidence.js";
import { createWhatIf } from "./whatifpanel.js";
import { FATES, nameOf, verdict } from "./words.js";

export function createInspector(root, { model, playhead, selection, look, actions }) {
  const panel = root.querySelector(".sv-inspector");
  const evidence = el("div", { class: "sv-evidence" });
  const whatIf = createWhatIf();
  panel.append(evidence, whatIf.element);
  let shown = null;

  function render(frame) {
    const { found, decision } = look(frame);
    const state = [
      found?.key,
      decision?.kind,
      decision?.round.index,
      found?.state,
      found?.verified,
      selection.pinned() !== null,
      frame.phase,
    ].join("|");
    if (state === shown) return;
    shown = state;
    evidence.replaceChildren(...content(found, decision, frame));
    whatIf.render(isDecided(found) ? found : null);
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
    toggleWhatIf: whatIf.toggle,
    reset() {
      shown = null;
    },
  };
}

// What if can be asked: the verdict is on screen, and no later one of its round is hidden.
function isDecided(found) {
  return found?.lane === "speculative" && !found.round.veiled && isFate(found.state);
}

const isFate = (state) => state !== null && state !== "drafting";

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
