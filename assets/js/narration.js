// What is happening at one moment, in words, from the run's own numbers. Three levels: a newcomer's,
// a practitioner's, and the formula. No elements here.

import { formulaLines } from "./narrationformula.js";
import { newcomerLines } from "./narrationnewcomer.js";
import { practitionerLines } from "./narrationpractitioner.js";
import { leadLane } from "./model.js";

export const LEVELS = [
  ["newcomer", "Newcomer", newcomerLines],
  ["practitioner", "Practitioner", practitionerLines],
  ["formula", "Formula", formulaLines],
];

// The moment that a chosen token, or else the last decision, stands for. `found` is as the stage
// finds a token: {token, round, index, settings, state, verified}.
export function momentOf(found, decision, frame, model) {
  const about = { settings: model.start?.settings, figures: frame.figures, alone: alone(model) };
  if (decision && isOver(frame)) return { ...about, kind: "whole" };
  if (found) return { ...about, ...found, kind: kindOf(found) };
  if (decision?.kind === "verify" && decision.round.drafted > 0)
    return { ...about, round: decision.round, kind: "verify" };
  const idle = frame.figures === null || !leadLane(model);
  return { ...about, kind: idle ? "idle" : "moving" };
}

// The run was watched to its end, and nothing in it is being looked at.
const isOver = ({ complete, atEnd, stepping, figures }) =>
  complete && atEnd && !stepping && figures !== null;

function kindOf({ token, state }) {
  if (state === "drafting") return "draft";
  return token.fate;
}

// Mean seconds of one token of the target alone, as this run measured it; null without a baseline.
function alone(model) {
  const lane = model.lanes.baseline;
  return lane && lane.tokens > 0 ? lane.seconds / lane.tokens : null;
}

// {title, lines}: lines of the moment at a level, a title for it.
export function narrate(moment, level) {
  const [, , write] = LEVELS.find(([name]) => name === level) ?? LEVELS[0];
  return { title: titleOf(moment), lines: write(moment).filter(Boolean) };
}

const TITLES = {
  idle: () => "What is happening",
  moving: () => "The run so far",
  whole: () => "The whole run",
  draft: ({ round, index, verified }) =>
    (verified ? "Scored, not yet tested: guess " : "Guess ") + (index + 1) + " of " + round.drafted,
  verify: ({ round }) => "One target call for " + (round.drafted + 1) + " places",
  accepted: ({ round, index }) => "Guess " + (index + 1) + " of " + round.drafted + " stays",
  rejected: ({ round, index }) => "Guess " + (index + 1) + " of " + round.drafted + " goes",
  discarded: () => "Never tested",
  resampled: () => "The target's own token",
  bonus: () => "One token more, at no cost",
  target: () => "The target writes",
};

function titleOf(moment) {
  const place = moment.round ? "Round " + (moment.round.index + 1) + ": " : "";
  const title = TITLES[moment.kind](moment);
  if (!place) return title;
  const lower = title[0].toLowerCase() + title.slice(1);
  return (moment.round.lane === "baseline" ? "Baseline: " : place) + lower;
}
