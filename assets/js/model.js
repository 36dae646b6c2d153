// The run as the stage knows it: what the lines said, with each round's place on its lane's clock.

import { addSteps } from "./steps.js";

export const COMMITTED = new Set(["accepted", "resampled", "bonus", "target"]);

// Lines leave out settings that hold their default (see Settings in specviz/records.py).
const DEFAULTS = {
  max_new_tokens: 128,
  gamma: 4,
  schedule: "constant",
  confidence: 0,
  temperature: 0,
  top_k: 0,
  top_p: 1,
  min_p: 0,
  seed: 0,
};

export function createModel() {
  const model = {};
  resetModel(model);
  return model;
}

export function resetModel(model) {
  Object.assign(model, {
    start: null,
    status: null,
    error: null,
    done: null,
    lanes: {},
    ordered: [], // rounds of both lanes, as they arrived
    settledAt: [], // for each of those, the time by which it and all before it had ended
    seconds: 0, // the longest lane so far
    veiled: false, // what follows is held back, while verdicts are being guessed
  });
}

function createLane(name) {
  return {
    name,
    rounds: [],
    ends: [],
    stepStarts: [],
    steps: 0,
    seconds: 0,
    tokens: 0,
    prefill: null,
    end: null,
  };
}

const HANDLERS = {
  start(model, event) {
    model.start = { ...event, settings: { ...DEFAULTS, ...event.settings } };
    model.status = null;
    model.lanes = {};
    for (const name of event.lanes) model.lanes[name] = createLane(name);
  },
  status(model, event) {
    model.status = event.message && !(event.progress >= 1) ? event : null;
  },
  prefill(model, event) {
    const lane = model.lanes[event.lane];
    if (lane) lane.prefill = event.s;
  },
  round(model, event) {
    const lane = model.lanes[event.lane];
    if (lane) addRound(model, lane, event.round, event.figures);
  },
  end(model, event) {
    const lane = model.lanes[event.lane];
    if (lane) lane.end = event;
  },
  done(model, event) {
    model.done = event;
    model.status = null;
  },
  error(model, event) {
    model.error = event.message;
    model.status = null;
  },
};

export function applyEvent(model, event) {
  const handler = Object.hasOwn(HANDLERS, event.e) ? HANDLERS[event.e] : null;
  if (handler) handler(model, event);
}

function addRound(model, lane, plain, figures) {
  const drafted = plain.drafted || [];
  const tokens = plain.added ? [...drafted, plain.added] : drafted;
  const start = lane.seconds;
  const draftEnd = start + plain.draft_s;
  const round = {
    lane: lane.name,
    index: lane.rounds.length,
    position: lane.tokens,
    tokens,
    gamma: plain.gamma ?? null, // how many could have been drafted, where that was recorded
    drafted: drafted.length,
    tested: drafted.filter((token) => token.fate !== "discarded").length,
    accepted: drafted.filter((token) => token.fate === "accepted").length,
    committed: tokens.filter((token) => COMMITTED.has(token.fate)).length,
    start,
    draftEnd,
    verifyEnd: draftEnd + plain.verify_s,
    end: draftEnd + plain.verify_s + plain.sample_s,
    figures,
  };
  lane.seconds = round.end;
  lane.tokens += round.committed;
  lane.rounds.push(round);
  lane.ends.push(round.end);
  addSteps(lane, round);
  model.ordered.push(round);
  model.settledAt.push(Math.max(round.end, model.settledAt.at(-1) ?? 0));
  model.seconds = Math.max(model.seconds, round.end);
}

// The lane that steps count in: the speculative one where there is one.
export function leadLane(model) {
  return model.lanes.speculative || model.lanes.baseline || null;
}

export function keyOf(round, index) {
  return round.lane + ":" + round.index + ":" + index;
}

// The key of the token that stands at this place of the lane's text, or null.
export function keyAt(lane, position) {
  const round = lane.rounds.find((one) => position < one.position + one.committed);
  if (!round || position < 0) return null;
  const kept = round.tokens.filter((token) => COMMITTED.has(token.fate));
  return keyOf(round, round.tokens.indexOf(kept[position - round.position]));
}

// The token to look at when a whole round is meant: its rejection, or its last.
export function tellingKey(round) {
  const rejected = round.tokens.findIndex((token) => token.fate === "rejected");
  return keyOf(round, rejected >= 0 ? rejected : round.tokens.length - 1);
}

export function isReplay(model) {
  return model.start !== null && model.start.mode === "replay";
}

// No more lines will come for this run.
export function isComplete(model) {
  return model.done !== null || model.error !== null || (model.start !== null && allEnded(model));
}

function allEnded(model) {
  const lanes = Object.values(model.lanes);
  return lanes.length > 0 && lanes.every((lane) => lane.end !== null);
}

export function wasStopped(model) {
  return endedBy(model, "stopped");
}

function endedBy(model, reason) {
  return Object.values(model.lanes).some((lane) => lane.end?.finish_reason === reason);
}

export function phase(model) {
  if (model.error !== null || endedBy(model, "error")) return "failed";
  if (model.start === null) return model.status ? "loading" : "empty";
  if (wasStopped(model)) return "stopped";
  return isComplete(model) ? "finished" : "running";
}

// The figures of the last line that lies wholly before this time; null before the first.
export function figuresAt(model, time) {
  if (time >= model.seconds) return model.ordered.at(-1)?.figures ?? null;
  const settled = upperBound(model.settledAt, time);
  if (settled > 0) return model.ordered[settled - 1].figures;
  const lead = leadLane(model);
  const ended = lead ? upperBound(lead.ends, time) : 0;
  return ended > 0 ? lead.rounds[ended - 1].figures : null;
}

// How many of these rising values are <= limit.
export function upperBound(values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
