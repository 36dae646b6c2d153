// What the three plots show: their panels, lines and axes, and the numbers at a position of the
// playhead. No drawing here. Every series is thinned to a few hundred points, so that the cost of
// an update does not grow with the run.

import { count, share, times } from "./format.js";
import { figuresAt, leadLane } from "./model.js";

const POINTS = 240;

// The indices to draw of `length` points: evenly spread, always with the last one.
export function thin(length) {
  const stride = Math.max(1, Math.ceil(length / POINTS));
  const kept = [];
  for (let i = stride - 1; i < length; i += stride) kept.push(i);
  if (length > 0 && kept.at(-1) !== length - 1) kept.push(length - 1);
  return kept;
}

// Points (x, y) of the lead lane's running figures, up to its round `full`.
function running(lane, full, name) {
  const x = [];
  const y = [];
  for (const i of thin(full)) {
    const figures = lane.rounds[i].figures;
    if (typeof figures?.[name] !== "number") continue;
    x.push(figures.tokens);
    y.push(figures[name]);
  }
  return { x, y };
}

// The speedup over tokens; its last point is the one the headline shows, for the baseline moves
// on after the other lane has ended.
function speedups(model, at) {
  const { x, y } = running(leadLane(model), at.lead, "speedup");
  const now = figuresAt(model, at.time);
  if (typeof now?.speedup === "number" && y.length > 0) {
    x.push(now.tokens);
    y.push(now.speedup);
  }
  return { x, y };
}

// Tokens against the lane's own clock, from its start on.
function progress(lane, full) {
  const x = [0];
  const y = [0];
  if (!lane) return { x, y };
  for (const i of thin(full)) {
    x.push(lane.ends[i]);
    y.push(lane.rounds[i].position + lane.rounds[i].committed);
  }
  return { x, y };
}

// The round of the lead lane after which there were this many tokens.
function roundAfter(model, tokens) {
  return (
    leadLane(model)?.rounds.find((round) => round.position + round.committed >= tokens) ?? null
  );
}

function acceptedLengths(lane, full) {
  const counts = [];
  for (let r = 0; r < full; r += 1) {
    const round = lane.rounds[r];
    while (counts.length <= round.accepted) counts.push(0);
    counts[round.accepted] += 1;
  }
  return { x: counts.map((_, length) => length), y: counts };
}

const last = (series) => series.y.at(-1) ?? null;

// The longest x a run of this many tokens can reach: axes stand still while it runs.
function tokenLimit(model) {
  const lead = leadLane(model);
  return Math.max(model.start?.settings?.max_new_tokens ?? 128, lead?.tokens ?? 0);
}

function timeLimit(model, complete) {
  if (complete) return model.seconds;
  const rough = Math.max(model.seconds * 1.15, 0.5);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 1.5, 2, 3, 5, 7, 10].find((m) => m * power >= rough);
}

export const CHARTS = {
  acceptance: {
    panels: [{ y: [0, 1.04], xTitle: "tokens", fixed: true }],
    lines: [
      { panel: 0, colour: "accepted", label: "TAR", format: share },
      { panel: 0, colour: "ink", label: "alpha", format: share, dash: "5px,3px" },
    ],
    series(model, at) {
      const lane = leadLane(model);
      return [running(lane, at.lead, "tar"), running(lane, at.lead, "alpha")];
    },
    ranges: (model) => [{ x: [0, tokenLimit(model)] }],
    points: (model, { figures, lane }) =>
      lane === leadLane(model)?.name
        ? [
            { panel: 0, x: figures.tokens, y: figures.tar },
            { panel: 0, x: figures.tokens, y: figures.alpha },
          ]
        : [],
    roundOf: (model, { x }) => roundAfter(model, x),
    sentence: ([tar, alpha]) => "TAR " + share(last(tar)) + ", alpha " + share(last(alpha)) + ".",
  },
  calls: {
    panels: [
      { y: [0, null], xTitle: "tokens", rule: 1, ruleLabel: "baseline" },
      { y: [0, null], xTitle: "guesses accepted in a round", bars: true },
    ],
    lines: [
      { panel: 0, colour: "ink", label: "", format: share },
      { panel: 1, colour: "accepted", bars: true },
    ],
    series(model, at) {
      const lane = leadLane(model);
      return [running(lane, at.lead, "tokens_per_target_call"), acceptedLengths(lane, at.lead)];
    },
    ranges(model, series) {
      const longest = Math.max(model.start?.settings?.gamma ?? 4, ...series[1].x);
      const top = Math.max(2, ...series[0].y, 0);
      return [
        { x: [0, tokenLimit(model)], y: [0, Math.ceil(top * 1.1)] },
        { x: [-0.6, longest + 0.6], y: [0, Math.max(4, ...series[1].y) * 1.25] },
      ];
    },
    points(model, round) {
      const lane = leadLane(model);
      if (round.lane !== lane?.name) return [];
      const { tokens, tokens_per_target_call: calls } = round.figures;
      return [
        { panel: 0, x: tokens, y: calls },
        {
          panel: 1,
          bar: round.accepted,
          count: lane.rounds.filter((r) => r.accepted === round.accepted).length,
        },
      ];
    },
    roundOf: (model, { x, data }) => (data.type === "bar" ? null : roundAfter(model, x)),
    sentence: ([calls, lengths]) =>
      share(last(calls)) +
      " tokens per target call. Rounds by number accepted: " +
      (lengths.y.map((n, i) => i + " in " + count(n, "round")).join(", ") || "none yet") +
      ".",
  },
  race: {
    panels: [
      { y: [0, null], xTitle: "seconds on each lane's own clock" },
      { y: [0, null], xTitle: "tokens", rule: 1, ruleLabel: "1x" },
    ],
    lines: [
      { panel: 0, colour: "accepted", label: "speculative", lane: true },
      { panel: 0, colour: "target", label: "baseline", lane: true, dash: "5px,3px" },
      { panel: 1, colour: "ink", label: "", format: times },
    ],
    series(model, at) {
      const own = progress(model.lanes.speculative, at.speculative);
      const plain = progress(model.lanes.baseline, at.baseline);
      if (!model.lanes.baseline) plain.x.length = plain.y.length = 0;
      return [own, plain, speedups(model, at)];
    },
    ranges(model, series, complete) {
      const speedups = series[2].y.slice(-Math.ceil(series[2].y.length * 0.9));
      return [
        { x: [0, timeLimit(model, complete)], y: [0, tokenLimit(model)] },
        {
          x: [0, tokenLimit(model)],
          y: [0, Math.max(1.5, Math.ceil(Math.max(1, ...speedups) * 2.4) / 2)],
        },
      ];
    },
    points(model, round) {
      const place = { panel: 0, x: round.end, y: round.position + round.committed };
      const { tokens, speedup } = round.figures;
      return round.lane === "baseline" ? [place] : [place, { panel: 1, x: tokens, y: speedup }];
    },
    roundOf(model, { x, y, data }) {
      const lane = model.lanes[data.name];
      return lane
        ? (lane.rounds.find((round) => round.position + round.committed >= y) ?? null)
        : roundAfter(model, x);
    },
    sentence: ([own, plain, speedup]) =>
      "Speculative " +
      count(last(own) ?? 0, "token") +
      " in " +
      (own.x.at(-1) ?? 0).toFixed(2) +
      " s, baseline " +
      count(last(plain) ?? 0, "token") +
      " in " +
      (plain.x.at(-1) ?? 0).toFixed(2) +
      " s; " +
      (last(speedup) === null
        ? "speedup not measured."
        : "measured speedup " + times(last(speedup)) + "."),
  },
};
