// The narration for newcomers, in words alone.

import { apart, count, inHundred, milliseconds, probability, times } from "./format.js";
import { gainWords } from "./narrationgain.js";
import { sourceWords } from "./sources.js";
import { acceptance, firstChoice, isGreedy, nameOf, rejectedOf } from "./words.js";

const capital = (text) => text[0].toUpperCase() + text.slice(1);

export function newcomerLines(moment) {
  return NEWCOMER[moment.kind](moment, isGreedy(moment.settings));
}

const BEHIND = "All guesses behind it go too: they were built on a token that is no longer there.";

const NEWCOMER = {
  idle: () => [
    "A large model writes one token (a word, or a piece of one) at a time, and each takes a whole pass over its weights. Here a quick draft guesses several tokens ahead, and the large model checks them all in one pass.",
  ],
  moving: ({ settings, figures }) => [
    "In each round the draft guesses " +
      (settings.schedule === "adaptive"
        ? "some tokens"
        : "up to " + count(settings.gamma, "token")) +
      ", the target checks them in one pass, and what passes stays. Then the target adds one token of its own.",
    "So far " + figures.accepted + " of " + figures.drafted + " guesses stayed.",
  ],
  whole: ({ figures }) => [
    "The target wrote " +
      count(figures.tokens, "token") +
      " in " +
      count(figures.target_calls, "pass", "passes") +
      ": " +
      figures.accepted +
      " of " +
      count(figures.drafted, "guess", "guesses") +
      " stayed. Alone it makes one pass for every token.",
    paceWords(figures),
    "Point at a token to see why it stayed or went. Play shows the run again.",
  ],
  draft: (moment, greedy) => [
    guessWords(moment, greedy),
    moment.verified
      ? "The target has looked at it by now. Whether it stays comes next."
      : "Each guess builds on the ones before it. The target has not looked at any of them yet.",
  ],
  verify: ({ round, alone }) => [
    "The target, the large model, reads " +
      (round.drafted === 1 ? "the guess" : "all " + round.drafted + " guesses") +
      " in one pass of " +
      milliseconds(round.verifyEnd - round.draftEnd) +
      ". For every place it now knows what it would have written there itself.",
    alone === null
      ? ""
      : "Writing alone, it needs " + milliseconds(alone) + " for every single token.",
  ],
  accepted: ({ token }, greedy) =>
    greedy
      ? [
          "The target would have written " +
            nameOf(token) +
            " itself: it is its first choice here. The guess stays, and no pass was spent on it alone.",
        ]
      : chanceWords(token, "it stays"),
  rejected: ({ token }, greedy) => {
    const first = firstChoice(token);
    if (!greedy) return [...chanceWords(token, "it goes"), BEHIND];
    const instead =
      first && first[0] !== token.id ? "The target's first choice here is another" : "";
    return [
      (instead || nameOf(token) + " is not the target's first choice") + ". The guess goes.",
      BEHIND,
    ];
  },
  discarded: ({ token, round }) => {
    const rejected = rejectedOf(round);
    if (!rejected) return ["The text had already ended, so " + nameOf(token) + " was not needed."];
    return [
      nameOf(token) +
        " was guessed to come behind " +
        nameOf(rejected) +
        ", which was thrown away. A guess about a text that is not there cannot be tested, so it goes too.",
    ];
  },
  resampled: ({ token, round, alone }, greedy) => [
    "In place of the guess that failed the target puts " +
      (greedy ? "its own first choice, " : "a token of its own, ") +
      nameOf(token) +
      ".",
    greedy
      ? "The pass that tested the guesses had already found it: it costs nothing more."
      : "It is drawn only from tokens to which the draft gave too little; accepted guesses cover the rest. So every token comes as often as the target alone would write it.",
    gainWords(round, alone),
  ],
  bonus: ({ token, round, alone }) => [
    (round.drafted === 1 ? "The guess was right" : "All " + round.drafted + " guesses were right") +
      ", and the same pass had also scored the place behind them: " +
      nameOf(token) +
      " comes with it.",
    gainWords(round, alone),
  ],
  target: ({ token, round }) => [
    round.lane === "baseline"
      ? "The target alone: one pass over all its weights, " +
        milliseconds(round.end - round.start) +
        ", for one token, " +
        nameOf(token) +
        "."
      : "Nothing was guessed in this round. The target wrote one token, " +
        nameOf(token) +
        ", as it does alone.",
  ],
};

// Both lanes' seconds for one token, as they were measured.
function paceWords({ tokens, seconds, baseline_tokens: others, baseline_seconds: alone, speedup }) {
  if (typeof speedup !== "number") return "";
  return (
    "A token took " +
    milliseconds(seconds / tokens) +
    ", with the target alone " +
    milliseconds(alone / others) +
    ": " +
    times(speedup) +
    (speedup < 1 ? ", so here guessing does not pay." : ".")
  );
}

function guessWords({ token, round }, greedy) {
  const { subject, who } = sourceWords(token);
  const matched = count(token.matched ?? 0, "token");
  if (token.source === "prompt lookup")
    return (
      "The last " +
      matched +
      " already stand earlier in the text. " +
      nameOf(token) +
      " came next there, so it is the guess. No second model is asked."
    );
  if (token.source === "retrieval")
    return (
      "The last " +
      matched +
      " also stand in text the target wrote before. " +
      nameOf(token) +
      " is what came next there, so it is the guess. No second model is asked."
    );
  const chance =
    !greedy && typeof token.q === "number" ? ", and gives it " + inHundred(token.q) : "";
  const left = round.drafted > 1 ? "" : " It is the only guess of this round.";
  return capital(subject) + ", " + who + ", guesses " + nameOf(token) + chance + "." + left;
}

// The test by chance in everyday words.
function chanceWords(token, end) {
  const limit = acceptance(token);
  if (limit === null) return [nameOf(token) + ": " + end + "."];
  const gave =
    capital(sourceWords(token).subject) +
    " gave " +
    nameOf(token) +
    " " +
    inHundred(token.q) +
    ", the target gives it " +
    inHundred(token.p) +
    ".";
  if (limit === 1) return [gave + " A guess the target likes no less always stays."];
  const [shownLimit, shownU] =
    typeof token.u === "number" ? apart(limit, token.u) : [probability(limit), null];
  return [
    gave + " So its chance to stay is " + inHundred(limit) + ".",
    shownU === null
      ? ""
      : "The number drawn between 0 and 1 was " +
        shownU +
        (token.u < limit ? ", below " : ", not below ") +
        shownLimit +
        ": " +
        end +
        ".",
  ];
}
