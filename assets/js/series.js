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
  const peaks = { speedup: 0, calls: 0, longest: 0, rounds: 0, update };

  function reset() {
    seen = 0;
    start = model.start;
    counts = [];
    Object.assign(peaks, { speedup: 0, calls: 0, longest: 0, rounds: 0 });
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
    if (tokensAfter(round) < EARLY * tokenLimit(model)) return;
    peaks.speedup = Math.max(peaks.speedup, round.figures?.speedup ?? 0);
    peaks.calls = Math.max(peaks.calls, round.figures?.tokens_per_target_call ?? 0);
  }

  return peaks;
}
