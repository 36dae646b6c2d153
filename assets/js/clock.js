// The playhead: one position on the lanes' common time axis, or an exact decision while stepping.

import { leadLane, upperBound } from "./model.js";
import { stepAt, stepCount, stepTime, stepsDoneBy } from "./steps.js";

export const RATES = [0.25, 0.5, 1, 2, 4, 8];

export function createPlayhead(model) {
  const head = {
    time: 0,
    step: null, // decisions done in the lead lane, while stepping; null when time alone decides
    following: true, // at the head of a run that still goes on
    playing: false,
    rate: 1,
  };

  function rest() {
    head.playing = false;
    head.following = false;
  }

  function goTo(time) {
    head.step = null;
    head.time = Math.min(Math.max(time, 0), model.seconds);
  }

  function goToStep(step) {
    const lead = leadLane(model);
    if (!lead || lead.rounds.length === 0) return;
    rest();
    head.step = Math.min(Math.max(step, 0), lead.steps);
    head.time = timeOfStep(lead, head.step);
  }

  return Object.assign(head, {
    reset() {
      Object.assign(head, { time: 0, step: null, following: true, playing: false });
    },
    advance(elapsed) {
      head.step = null;
      head.time = Math.min(head.time + elapsed * head.rate, model.seconds);
    },
    play() {
      head.following = false;
      head.playing = true;
      head.step = null;
    },
    pause: rest,
    follow() {
      head.step = null;
      head.playing = false;
      head.following = true;
      head.time = model.seconds;
    },
    goTo,
    seek(time) {
      head.following = false;
      goTo(time);
    },
    goToStep,
    stepBy(count) {
      const lead = leadLane(model);
      if (lead) goToStep(currentStep(lead, head) + count);
    },
    roundBy(count) {
      const lead = leadLane(model);
      if (!lead) return;
      const done = positionIn(model, head, lead).full >= lead.rounds.length;
      if (done && count > 0) {
        rest();
        goTo(model.seconds);
      } else goToStep(stepOfRound(lead, targetRound(lead, count)));
    },
    atEnd: () => head.time >= model.seconds && (head.step === null || lastStep()),
    position: (lane) => positionIn(model, head, lane),
  });

  function lastStep() {
    const lead = leadLane(model);
    return lead !== null && head.step >= lead.steps;
  }

  // Forward: the end of the round under the playhead. Back: its beginning, or the one before.
  function targetRound(lead, count) {
    const { full, steps } = positionIn(model, head, lead);
    return count > 0 ? full + count : steps > 0 ? full + count + 1 : full + count;
  }
}

function stepOfRound(lane, round) {
  if (round < 0) return 0;
  return round >= lane.rounds.length ? lane.steps : lane.stepStarts[round];
}

function currentStep(lane, head) {
  if (head.step !== null) return head.step;
  const { full, steps } = byTime(lane, head.time);
  return stepOfRound(lane, full) + steps;
}

function timeOfStep(lane, step) {
  if (step === 0) return 0;
  const index = upperBound(lane.stepStarts, step - 1) - 1;
  return stepTime(lane.rounds[index], step - 1 - lane.stepStarts[index]);
}

// {full: rounds wholly done, steps: decisions done in the round after them}
function positionIn(model, head, lane) {
  const stepping = head.step !== null && lane === leadLane(model);
  return stepping ? byStep(lane, head.step) : byTime(lane, head.time);
}

function byStep(lane, step) {
  if (step >= lane.steps) return { full: lane.rounds.length, steps: 0 };
  const full = upperBound(lane.stepStarts, step) - 1;
  return { full, steps: step - lane.stepStarts[full] };
}

function byTime(lane, time) {
  const full = upperBound(lane.ends, time);
  const round = lane.rounds[full];
  return { full, steps: round ? stepsDoneBy(round, time) : 0 };
}

// The last decision made in the lead lane: {round, kind, token}, or null at the very start.
export function lastDecision(model, head) {
  const lead = leadLane(model);
  if (!lead) return null;
  let { full, steps } = positionIn(model, head, lead);
  if (steps === 0) {
    full -= 1;
    if (full < 0) return null;
    steps = stepCount(lead.rounds[full]);
  }
  const round = lead.rounds[full];
  return { round, ...stepAt(round, steps - 1) };
}
