// What a round gave for its time, beside the target alone.

import { count, milliseconds } from "./format.js";

// `alone` is the mean seconds of one token of the target alone, or null.
export function gainWords(round, alone) {
  if (alone === null || round.lane !== "speculative") return "";
  const each = (round.end - round.start) / round.committed;
  return (
    "This round gave " +
    count(round.committed, "token") +
    " in " +
    milliseconds(round.end - round.start) +
    (round.committed > 1 ? ", " + milliseconds(each) + " for each" : "") +
    ". Alone, the target takes " +
    milliseconds(alone) +
    " for one."
  );
}
