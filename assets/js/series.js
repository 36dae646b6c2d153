// The numbers behind the charts, read off the stage's model. No drawing here.

import { figuresAt, leadLane } from "./model.js";

const EARLY = 0.06; // of the tokens asked for: before that, ratios of a few calls jump about

// One of the lead lane's running figures over tokens, up to its round `full`.
export function running(model, full, name) {
  const series = { xs: [], ys: [] };
  const rounds = leadLane(model)?.rounds ?? [];
  for (let i = 0; i < full; i += 1) {
    const figures = rounds[i].figures;
    if (typeof figures?.[name] !== "number") continue;
    series.xs.push(figures.tokens);
    series.ys.push(figures[name]);
  }
  return series;
}

// The measured speedup over tokens; its last point is the one the headline shows, for the baseline
// moves on after the other lane has ended.
export function speedups(model, at) {
  const series = running(model, at.lead, "speedup");
  const now = figuresAt(model, at.time);
  if (typeof now?.speedup === "number" && series.ys.length > 0) {
    series.xs.push(now.tokens);
    series.ys.push(now.speedup);
  }
  return series;
}

// A count of each round of the lead lane, as steps: a round is one unit wide, around its number.
export function byRound(model, full, countOf) {
  const series = { xs: [], ys: [] };
  const rounds = leadLane(model)?.rounds.slice(0, full) ?? [];
  for (const round of rounds) {
    const value = countOf(round);
    if (typeof value !== "number") continue;
    series.xs.push(round.index + 0.5, round.index + 1.5);
    series.ys.push(value, value);
  }
  return series;
}

// Tokens against the lane's own clock, from its start on.
export function progress(lane, full) {
  if (!lane) return { xs: [], ys: [] };
  const series = { xs: [0], ys: [0] };
  for (let i = 0; i < full; i += 1) {
    series.xs.push(lane.ends[i]);
    series.ys.push(tokensAfter(lane.rounds[i]));
  }
  return series;
}

// In how many rounds 0, 1, 2, ... guesses were accepted.
export function acceptedLengths(model, full) {
  const rounds = leadLane(model)?.rounds ?? [];
  const ys = [];
  for (let i = 0; i < full; i += 1) {
    while (ys.length <= rounds[i].accepted) ys.push(0);
    ys[rounds[i].accepted] += 1;
  }
  return { xs: ys.map((_, length) => length), ys };
}

// Whether a round drafted another number than gamma, or could have. Near the end of the text there
// is room for less: that does not count.
function variesIn(round, { gamma, max_new_tokens: most }) {
  const usual = Math.min(gamma, most - round.position - 1);
  const allowed = round.gamma ?? usual;
  return round.lane === "speculative" && (allowed !== usual || round.drafted !== usual);
}

export const tokensAfter = (round) => round.position + round.committed;

export const lastOf = ({ ys }) => ys.at(-1) ?? null;

// The most tokens this run can reach.
export function tokenLimit(model) {
  return Math.max(model.start?.settings?.max_new_tokens ?? 128, leadLane(model)?.tokens ?? 0);
}

// The highest values so far, kept up as rounds arrive: axes are sized by the whole run, not by
// where the playhead is, and never shrink while it goes on.
export function createPeaks(model) {
  let seen = 0;
  let start = null;
  let counts = [];
  const none = { speedup: 0, calls: 0, longest: 0, rounds: 0, drafted: 0, varied: false };
  const peaks = { ...none, update };

  function reset() {
    seen = 0;
    start = model.start;
    counts = [];
    Object.assign(peaks, none);
  }

  function update() {
    if (model.start !== start || seen > model.ordered.length) reset();
    for (; seen < model.ordered.length; seen += 1) see(model.ordered[seen]);
    return peaks;
  }

  function see(round) {
    if (round.lane !== leadLane(model).name) return;
    counts[round.accepted] = (counts[round.accepted] ?? 0) + 1;
    peaks.longest = Math.max(peaks.longest, round.accepted);
    peaks.rounds = Math.max(peaks.rounds, counts[round.accepted]);
    peaks.drafted = Math.max(peaks.drafted, round.gamma ?? 0, round.drafted);
    peaks.varied ||= variesIn(round, model.start.settings);
    if (tokensAfter(round) < EARLY * tokenLimit(model)) return;
    peaks.speedup = Math.max(peaks.speedup, round.figures?.speedup ?? 0);
    peaks.calls = Math.max(peaks.calls, round.figures?.tokens_per_target_call ?? 0);
  }

  return peaks;
}
