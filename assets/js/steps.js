// A round taken apart into decisions: draft a token (once for each), verify (one target call),
// a verdict for each tested token, and the token the target adds.

export function stepCount(round) {
  return round.drafted + 1 + verdictCount(round);
}

function verdictCount(round) {
  return round.tested + (round.tokens.length > round.drafted ? 1 : 0);
}

export function addSteps(lane, round) {
  lane.stepStarts.push(lane.steps);
  lane.steps += stepCount(round);
}

// The lane time at which step k of the round is over.
export function stepTime(round, k) {
  if (k < round.drafted) {
    return round.start + ((round.draftEnd - round.start) * (k + 1)) / round.drafted;
  }
  const verdict = k - round.drafted;
  const total = verdictCount(round);
  if (verdict === total) return round.end;
  return round.verifyEnd + ((round.end - round.verifyEnd) * verdict) / total;
}

// What step k of the round does: {kind: draft | verify | verdict | added, token: index in round}.
export function stepAt(round, k) {
  if (k < round.drafted) return { kind: "draft", token: k };
  if (k === round.drafted) return { kind: "verify", token: null };
  const token = k - round.drafted - 1;
  if (token < round.tested) return { kind: "verdict", token };
  return { kind: "added", token: round.drafted };
}

export function stepsDoneBy(round, time) {
  const total = stepCount(round);
  let done = 0;
  while (done < total && stepTime(round, done) <= time) done += 1;
  return done;
}

// How token i of the round looks after so many steps: its fate, "drafting", or null (not there).
export function stateAfter(round, i, steps) {
  const token = round.tokens[i];
  if (i >= round.drafted) return steps >= round.drafted + round.tested + 2 ? token.fate : null;
  if (steps <= i) return null;
  if (token.fate === "discarded") {
    return steps > round.drafted + round.tested ? "discarded" : "drafting";
  }
  return steps > round.drafted + 1 + i ? token.fate : "drafting";
}
