// What each plot shows: its panels, their lines and axes, and where a round stands in them. Plain
// data and functions of the model; nothing is drawn here.

import { DASH, count, rate, seconds, share, times } from "./format.js";
import { leadLane } from "./model.js";
import { niceCeiling } from "./scale.js";
import {
  acceptedLengths,
  byRound,
  lastOf,
  progress,
  running,
  speedups,
  tokenLimit,
  tokensAfter,
} from "./series.js";

// A panel of the lead lane's running figures over its tokens. `lines` name the figures.
function overTokens(panel) {
  const measured = (round) =>
    panel.lines.filter((line) => typeof round.figures?.[line.figure] === "number");
  return {
    xTitle: "tokens",
    xWhole: true,
    series: (model, at) => panel.lines.map((line) => running(model, at.lead, line.figure)),
    values: (series) => series.map((one, i) => panel.lines[i].format(lastOf(one))),
    xRange: (model) => [0, tokenLimit(model)],
    points(model, round) {
      if (round.lane !== leadLane(model)?.name) return [];
      const x = tokensAfter(round);
      return measured(round).map((line) => ({ x, y: round.figures[line.figure] }));
    },
    stops(model, at) {
      const rounds = leadLane(model)?.rounds.slice(0, at.lead) ?? [];
      return rounds.map((round) => ({ round, x: tokensAfter(round), y: null }));
    },
    words({ round }) {
      const values = panel.lines.map(
        (line) => line.label + " " + line.format(round.figures?.[line.figure]),
      );
      return count(tokensAfter(round), "token") + ": " + values.join(", ");
    },
    ...panel,
  };
}

const ACCEPTANCE = overTokens({
  yTitle: "share accepted",
  lines: [
    { label: "TAR", figure: "tar", colour: "accepted", mark: "circle", format: share },
    { label: "alpha", figure: "alpha", colour: "ink", mark: "square", dash: true, format: share },
  ],
  yRange: () => [0, 1],
});

const CALLS = overTokens({
  yTitle: "tokens per call",
  lines: [
    {
      label: "this run",
      figure: "tokens_per_target_call",
      colour: "ink",
      mark: "circle",
      format: share,
    },
  ],
  rule: { value: 1, label: "baseline: 1" },
  yRange: (model, peaks) => [0, niceCeiling(Math.max(1.7, peaks.calls) * 1.15)],
});

const SPEEDUP = overTokens({
  yTitle: "times as fast",
  lines: [
    { label: "speedup", figure: "speedup", colour: "ink", mark: "circle", format: times },
  ],
  rule: { value: 1, label: "1x: the target alone" },
  series: (model, at) => [speedups(model, at)],
  yRange: (model, peaks) => [0, niceCeiling(Math.max(1.3, peaks.speedup) * 1.15)],
});

const LENGTHS = {
  bars: true,
  xTitle: "guesses accepted in a round",
  xWhole: true,
  yWhole: true,
  yTitle: "rounds",
  lines: [{ label: "rounds", colour: "accepted", mark: "square" }],
  series: (model, at) => [acceptedLengths(model, at.lead)],
  values: ([{ ys }]) => [ys.length > 0 ? String(ys.reduce((a, b) => a + b)) : share(null)],
  xRange: (model, peaks) => {
    const longest = Math.max(model.start?.settings?.gamma ?? 4, peaks.longest);
    return [-0.6, longest + 0.6];
  },
  yRange: (model, peaks) => [0, niceCeiling(Math.max(5, peaks.rounds) * 1.15)],
  points(model, round) {
    const lane = leadLane(model);
    if (round.lane !== lane?.name) return [];
    const like = lane.rounds.filter((other) => other.accepted === round.accepted);
    return [{ bar: round.accepted, count: like.length }];
  },
  stops(model, at) {
    const { xs, ys } = acceptedLengths(model, at.lead);
    return xs.map((x, i) => ({ round: null, x, y: null, count: ys[i] }));
  },
  words: (stop) => stop.x + " accepted: in " + count(stop.count, "round"),
};

const PROGRESS = {
  xTitle: "seconds on each lane's own clock",
  yTitle: "tokens",
  lines: [
    { label: "speculative", colour: "accepted", mark: "circle" },
    { label: "baseline", colour: "target", mark: "square", dash: true },
  ],
  series: (model, at) => [
    progress(model.lanes.speculative, at.speculative),
    progress(model.lanes.baseline, at.baseline),
  ],
  values: (series) => series.map((one) => (lastOf(one) === null ? share(null) : lastOf(one) + "")),
  xRange: (model, peaks, complete) => {
    const known = complete && model.seconds > 0;
    return [0, known ? model.seconds : niceCeiling(Math.max(model.seconds * 1.15, 0.5))];
  },
  yRange: (model) => [0, tokenLimit(model)],
  points: (model, round) => [{ x: round.end, y: tokensAfter(round) }],
  stops: (model, at) =>
    Object.values(model.lanes).flatMap((lane) =>
      lane.rounds
        .slice(0, at[lane.name])
        .map((round) => ({ round, x: round.end, y: tokensAfter(round) })),
    ),
  words: ({ round, x, y }) =>
    round.lane +
    ": " +
    count(y, "token") +
    " after " +
    seconds(x) +
    ", " +
    rate(y / x) +
    " tok/s",
};

const area = (colour, mark) => ({ colour, mark, area: true });

const DRAFTS = {
  xTitle: "round",
  xWhole: true,
  yWhole: true,
  yTitle: "tokens",
  lines: [
    { label: "drafted", of: (round) => round.drafted, ...area("drafting", "diamond") },
    { label: "accepted", of: (round) => round.accepted, ...area("accepted", "circle") },
    { label: "gamma", of: (round) => round.gamma, colour: "ink", mark: "square", dash: true },
  ],
  series: (model, at) => DRAFTS.lines.map(({ of }) => byRound(model, at.lead, of)),
  values: (series) => series.map((one) => String(lastOf(one) ?? DASH)),
  xRange: (model, peaks, complete) => {
    const rounds = leadLane(model)?.rounds.length ?? 0;
    const known = complete && rounds > 0;
    return [0.5, 0.5 + (known ? rounds : niceCeiling(Math.max(rounds * 1.15, 10)))];
  },
  yRange: (model, peaks) => [0, Math.max(model.start?.settings?.gamma ?? 4, peaks.drafted) + 0.5],
  points(model, round) {
    if (round.lane !== leadLane(model)?.name) return [];
    return [{ x: round.index + 1, y: round.drafted }];
  },
  stops(model, at) {
    const rounds = leadLane(model)?.rounds.slice(0, at.lead) ?? [];
    return rounds.map((round) => ({ round, x: round.index + 1, y: null }));
  },
  words: ({ round }) =>
    "round " +
    (round.index + 1) +
    ": " +
    DRAFTS.lines.map(({ label, of }) => label + " " + (of(round) ?? DASH)).join(", "),
};

// The plots by the name they have in the page. `note` defines what is drawn, `sentence` says the
// last values in words; `isNeeded` is there where not every run has something to show.
export const CHARTS = {
  acceptance: {
    note: "TAR: accepted / drafted. Alpha: accepted / tested. Both over the run so far.",
    panels: [ACCEPTANCE],
    sentence: ([[tar, alpha]]) =>
      "TAR " + share(lastOf(tar)) + ", alpha " + share(lastOf(alpha)) + ".",
  },
  calls: {
    note: "New tokens / calls of the target, over the run so far; and what each round kept.",
    panels: [CALLS, LENGTHS],
    sentence: ([[calls], [lengths]]) =>
      share(lastOf(calls)) +
      " tokens per target call. Rounds by number accepted: " +
      (lengths.ys.map((n, i) => i + " in " + count(n, "round")).join(", ") || "none yet") +
      ".",
  },
  race: {
    note: "Decoding only. Speedup: seconds per token of the target alone / those of this run.",
    panels: [PROGRESS, SPEEDUP],
    sentence: ([[own, plain], [speedup]]) =>
      lane("Speculative", own) +
      ", " +
      lane("baseline", plain) +
      "; " +
      (lastOf(speedup) === null
        ? "speedup not measured."
        : "measured speedup " + times(lastOf(speedup)) + "."),
  },
  drafts: {
    note: "Gamma: how many may be drafted. Fewer are where the draft was unsure or found nothing.",
    panels: [DRAFTS],
    isNeeded: ({ start }, { varied }) =>
      varied || start?.settings.schedule === "adaptive" || start?.settings.confidence > 0,
    sentence: ([[drafted, accepted]]) =>
      "In the last round " +
      count(lastOf(drafted) ?? 0, "token") +
      " drafted, " +
      (lastOf(accepted) ?? 0) +
      " accepted.",
  },
};

const lane = (name, series) =>
  name + " " + count(lastOf(series) ?? 0, "token") + " in " + seconds(series.xs.at(-1) ?? 0);
