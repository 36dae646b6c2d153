// The narration for practitioners, in the field's terms.

import { inList } from "./evidence.js";
import { apart, count, milliseconds, probability, rate, share, times } from "./format.js";
import { gainWords } from "./narrationgain.js";
import { acceptance, isGreedy, nameOf, rejectedOf } from "./words.js";

const guesses = (number) => count(number, "guess", "guesses");
const capital = (text) => text[0].toUpperCase() + text.slice(1);

export function practitionerLines(moment) {
  return PRACTITIONER[moment.kind](moment, isGreedy(moment.settings));
}

const PRACTITIONER = {
  idle: () => [
    "Draft gamma tokens, verify them in one target forward, accept each with probability min(1, p/q), resample at the first rejection. The law of the output is the target's.",
  ],
  moving: ({ figures }) => [figureWords(figures)],
  whole: ({ figures }) => [
    figureWords(figures),
    typeof figures.speedup === "number"
      ? "Decoding only: " +
        rate(figures.tokens_per_s) +
        " tok/s against " +
        rate(figures.baseline_tokens_per_s) +
        " of the target alone, " +
        times(figures.speedup) +
        "."
      : "",
  ],
  draft: ({ token, round, index, verified }, greedy) => [
    "Draft step " +
      (index + 1) +
      " of " +
      round.drafted +
      " (" +
      token.source +
      "): " +
      nameOf(token) +
      draftChance(token, greedy) +
      ". The whole draft took " +
      milliseconds(round.draftEnd - round.start) +
      ".",
    verified ? "Its row of the target's logits is there; the test is next." : "",
  ],
  verify: ({ round, alone }) => {
    const seconds = round.verifyEnd - round.draftEnd;
    const times =
      alone === null ? "" : ", " + share(seconds / alone) + " times a plain decode step";
    return [
      "One forward over " +
        count(round.drafted + 1, "position") +
        ", the last committed token and the draft: " +
        milliseconds(seconds) +
        times +
        ". Row i is p behind the i-th prefix, so one pass scores every guess and the place behind the last.",
    ];
  },
  accepted: (moment, greedy) => [testWords(moment, greedy, "accepted")],
  rejected: (moment, greedy) => [
    testWords(moment, greedy, "rejected"),
    rejectionCost(moment.round),
  ],
  discarded: ({ round }) => [
    rejectedOf(round)
      ? "Conditioned on a rejected prefix: not tested. It counts in TAR, not in alpha."
      : "Behind the end of the text: not tested. It counts in TAR, not in alpha.",
  ],
  resampled: ({ token, round, alone }, greedy) => {
    const rejected = rejectedOf(round);
    const row = inList(rejected?.residual_top, token.id);
    return [
      greedy
        ? "The argmax of the row at which the draft failed: " + nameOf(token) + "."
        : "Drawn from norm(max(0, p \u2212 q)) of the row at which the draft failed: " +
          nameOf(token) +
          (row ? ", with probability " + probability(row[2]) : "") +
          ".",
      "Both caches are cut back to here. " + gainWords(round, alone),
    ];
  },
  bonus: ({ token, round, alone }) => [
    "Row " +
      (round.drafted + 1) +
      " of the same forward: " +
      nameOf(token) +
      ". gamma + 1 = " +
      round.committed +
      " tokens for one target call, the most a round of " +
      guesses(round.drafted) +
      " can give.",
    gainWords(round, alone),
  ],
  target: ({ token, round }) => [
    "One forward, one token: " + nameOf(token) + ", " + milliseconds(round.end - round.start) + ".",
  ],
};

function figureWords(figures) {
  return (
    "TAR " +
    share(figures.tar) +
    ", alpha " +
    share(figures.alpha) +
    ", " +
    share(figures.tokens_per_target_call) +
    " tokens per target call over " +
    count(figures.target_calls, "call") +
    "."
  );
}

// At temperature 0 q is one-hot; the list of candidates carries the softmax.
function draftChance(token, greedy) {
  const q = greedy ? inList(token.q_top, token.id)?.[2] : token.q;
  return typeof q === "number" ? ", q " + probability(q) + (greedy ? " at temperature 1" : "") : "";
}

function testWords({ token, index, round }, greedy, end) {
  const place = "Test " + (index + 1) + " of at most " + round.drafted + ". ";
  const limit = acceptance(token);
  if (greedy)
    return (
      place +
      (end === "accepted" ? "The guess is the argmax of p" : "The guess is not the argmax of p") +
      ": " +
      end +
      "."
    );
  if (limit === null || typeof token.u !== "number") return place + capital(end) + ".";
  const [a, b] = apart(limit, token.u);
  return place + "min(1, p/q) is " + a + ", u " + b + ": " + end + ".";
}

function rejectionCost(round) {
  const lost = round.drafted - round.tested;
  return lost === 0
    ? ""
    : guesses(lost) + " behind it " + (lost === 1 ? "is" : "are") + " discarded.";
}
