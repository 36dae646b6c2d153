// The guided walk: about two minutes through one recorded round, in its own numbers. Each stop is
// {title, lines, step, pin, part, picture}: the decision the playhead goes to, a token to pin or
// null, the part of the stage it is about, and the name of a picture or null.

import { comparisonOfTexts } from "./headline.js";
import { count, milliseconds, share, times } from "./format.js";
import { keyOf, leadLane } from "./model.js";
import { sourceWords } from "./sources.js";
import { stepCount } from "./steps.js";
import { isGreedy, nameOf, rejectedOf, verdict } from "./words.js";

// The round that shows most: some guesses kept, one rejected, one behind it; not the very first.
export function walkRound(model) {
  const rounds = leadLane(model)?.rounds ?? [];
  const drafted = rounds.filter((round) => round.drafted > 0);
  const worth = (round) =>
    4 * Boolean(rejectedOf(round)) +
    2 * (round.accepted > 0) +
    2 * (round.drafted > round.tested) +
    (round.index > 1) +
    (round.drafted > 1);
  return drafted.reduce(
    (best, round) => (!best || worth(round) > worth(best) ? round : best),
    null,
  );
}

export function walkStops(model, round) {
  const lane = leadLane(model);
  const walk = {
    model,
    round,
    lane,
    settings: model.start.settings,
    begin: lane.stepStarts[round.index],
  };
  return [before, guesses, call, ...tests(walk), behind, added, gain, sameText, yours]
    .map((write) => write(walk))
    .filter(Boolean);
}

const list = (tokens) => tokens.map(nameOf).join(", ");
const draftOf = ({ round }) => round.tokens.slice(0, round.drafted);

function stop(step, part, title, lines, more = {}) {
  return { step, part, title, lines: lines.filter(Boolean), pin: null, picture: null, ...more };
}

function meanAlone(model) {
  const lane = model.lanes.baseline;
  return lane?.tokens > 0 ? lane.seconds / lane.tokens : null;
}

function before({ model, round, begin }) {
  const alone = meanAlone(model);
  return stop(begin, "stream", "A text is being written", [
    "It grows by tokens: words, or pieces of one. The target, " +
      model.start.pair.target +
      ", could write it alone, one pass over all its weights for each token.",
    alone === null
      ? ""
      : "Alone it took " +
        milliseconds(alone) +
        " for a token: that is the lower lane, measured on the same machine.",
    "We stop before round " + (round.index + 1) + ".",
  ]);
}

function guesses(walk) {
  const { round, begin } = walk;
  const { subject, who } = sourceWords(round.tokens[0]);
  return stop(begin + round.drafted, "stream", "First, cheap guesses", [
    subject[0].toUpperCase() +
      subject.slice(1) +
      ", " +
      who +
      ", gives " +
      count(round.drafted, "guess", "guesses") +
      ": " +
      list(draftOf(walk)) +
      ".",
    "That took " +
      milliseconds(round.draftEnd - round.start) +
      ". Nobody has checked them yet: they stand in dashed boxes.",
  ]);
}

function call({ model, round, begin }) {
  const ratio = model.done?.figures?.verify_ratio;
  return stop(
    begin + round.drafted + 1,
    "inspector",
    "One pass checks them all",
    [
      "The target reads the guesses in one pass of " +
        milliseconds(round.verifyEnd - round.draftEnd) +
        ". Every place sees only what stands before it, so one pass tells what the target would write behind each beginning:",
      "Most of its time goes into reading the weights once, however many places are scored." +
        (typeof ratio === "number"
          ? " In this run such a pass took " +
            share(ratio) +
            " times as long as one for a single token."
          : ""),
    ],
    { picture: "triangle" },
  );
}

// The first test, and the one that failed where that is another.
function tests({ round }) {
  const failed = round.accepted < round.tested ? round.accepted : null;
  const places = [...new Set([0, failed].filter((place) => place !== null))];
  return places.map((place) => (walk) => test(walk, place));
}

function test({ round, settings, begin }, place) {
  const token = round.tokens[place];
  const found = { token, round, index: place, settings, state: token.fate, verified: true };
  const kept = token.fate === "accepted";
  return stop(
    begin + round.drafted + 2 + place,
    "inspector",
    kept ? nameOf(token) + " is kept" : nameOf(token) + " is thrown away",
    [verdict(found), kept ? whyKept(settings) : whyThrown(settings)],
  );
}

function whyKept(settings) {
  return isGreedy(settings)
    ? "At temperature 0 the target always takes its first choice, so a guess is right when it is the same."
    : "With sampling the target's probabilities are a law, not a choice. Keeping a guess with probability min(1, p/q) is what leaves that law exactly as it was.";
}

function whyThrown(settings) {
  return isGreedy(settings)
    ? "The text must be what the target alone would write, so a guess that differs is never kept."
    : "The draft was fonder of it than the target is. Keeping all such guesses would bend the text towards the draft.";
}

function behind({ round, begin }) {
  const lost = round.tokens.slice(round.tested, round.drafted);
  const rejected = rejectedOf(round);
  if (lost.length === 0 || !rejected) return null;
  return stop(
    begin + round.drafted + 1 + round.tested,
    "stream",
    "Why stop at the first that fails",
    [
      list(lost) +
        (lost.length === 1 ? " was" : " were") +
        " guessed to come behind " +
        nameOf(rejected) +
        ". That text no longer exists, so nothing can be said about " +
        (lost.length === 1 ? "it" : "them") +
        ": " +
        (lost.length === 1 ? "it is" : "they are") +
        " discarded, untested.",
    ],
    { pin: keyOf(round, round.tested) },
  );
}

function added({ round, settings, begin }) {
  const token = round.tokens[round.drafted];
  if (!token) return null;
  const found = { token, round, index: round.drafted, settings, state: token.fate, verified: true };
  const bonus = token.fate === "bonus";
  return stop(
    begin + stepCount(round),
    "inspector",
    bonus ? "One token more" : "The target's own token",
    [
      verdict(found),
      bonus
        ? ""
        : isGreedy(settings)
          ? "The pass had already found it, so a round never gives less than one token."
          : "Accepted guesses have used up min(p, q) of the law. What is missing to p is the rest, and only from that rest is drawn: both together are p again.",
    ],
    { picture: bonus || isGreedy(settings) ? null : "areas" },
  );
}

function gain({ model, round, begin }) {
  const alone = meanAlone(model);
  const speedup = model.done?.figures?.speedup;
  return stop(
    begin + stepCount(round),
    "timeline",
    "What the round gave",
    [
      count(round.committed, "token") +
        " in " +
        milliseconds(round.end - round.start) +
        "." +
        (alone === null
          ? ""
          : " Alone, the target would have needed about " +
            milliseconds(alone * round.committed) +
            ", by its mean in this run."),
      typeof speedup === "number"
        ? "Over the whole run: " +
          times(speedup) +
          " the speed of the target alone. The time axis shows every round."
        : "",
    ],
    { picture: alone === null ? null : "times" },
  );
}

function sameText({ model, settings, begin, round }) {
  const same = isGreedy(settings) ? comparisonOfTexts(model.done, settings) : "";
  return stop(begin + stepCount(round), "stream", "Is it still the target's text?", [
    isGreedy(settings)
      ? "Yes: at temperature 0 it is, token for token, what the target alone writes. In low precision two tokens that are nearly tied can fall either way."
      : "Yes: every text is as likely as with the target alone. Two runs still draw different texts, as two runs of the target would.",
    same ? "In this run, against the baseline: " + same + "." : "",
  ]);
}

function yours({ begin, round }) {
  return stop(begin + stepCount(round), null, "Now you", [
    "Full stop and comma step from decision to decision, arrows from round to round. Point at any token to see its numbers; click to pin it, and try What if.",
    "G lets you guess each verdict before it is shown. A question mark shows all keys.",
  ]);
}
