// The sentences: why a token was kept or thrown away, in the run's own numbers.

import { apart, count, probability, quote } from "./format.js";
import { sourceWords } from "./sources.js";

export const FATES = {
  accepted: {
    name: "accepted",
    sentence: "Drafted, tested by the target, and kept.",
  },
  rejected: {
    name: "rejected",
    sentence: "Drafted and tested, and the first in its round that failed.",
  },
  discarded: {
    name: "discarded",
    sentence: "Drafted behind a rejection. Its prefix no longer exists, so it was never tested.",
  },
  resampled: {
    name: "resampled",
    sentence:
      "The target's own token in place of the rejected one, drawn from what the draft left out.",
  },
  bonus: {
    name: "bonus",
    sentence:
      "All guesses of the round were accepted. The same target call had scored one more place.",
  },
  drafting: {
    name: "being drafted",
    sentence: "Guessed by the draft, not yet tested. Seen while a run is played.",
  },
  target: {
    name: "target",
    sentence: "Written by the target with nothing drafted before it, as in the baseline.",
  },
};

// A token as people can see it; half a character and special tokens have a label instead.
export function nameOf(token) {
  return quote(token.text || token.label || "");
}

// The acceptance probability min(1, p/q), or null where it was not recorded.
export function acceptance(token) {
  if (typeof token.p !== "number" || typeof token.q !== "number") return null;
  return token.q === 0 ? 1 : Math.min(1, token.p / token.q);
}

// The threshold of Settings.greedy in specviz/records.py.
export function isGreedy(settings) {
  return !settings || !(settings.temperature >= 1e-4);
}

// What the target would have chosen here: the likeliest candidate recorded, or null.
export function firstChoice(token) {
  const rows = token?.p_top ?? [];
  return rows.reduce((best, row) => (best === null || row[2] > best[2] ? row : best), null);
}

const named = (row) => quote(row[1]) + " (" + probability(row[2]) + ")";

function inTop(rows, id) {
  return (rows ?? []).find((row) => row[0] === id) ?? null;
}

// Why this token has its fate, or what is still open about it. `found` is {token, round, index,
// settings, state, verified}; state is how the token looks at the playhead.
export function verdict(found) {
  if (found.state === "drafting") return openSentence(found);
  const write = SENTENCES[found.token.fate];
  return write ? write(found, isGreedy(found.settings)) : "";
}

const COPIES = {
  "prompt lookup": " is copied from earlier in the text.",
  retrieval: " is what followed these words in text the target wrote before.",
};
const capital = (text) => text[0].toUpperCase() + text.slice(1);

function openSentence({ token, verified }) {
  const guess = COPIES[token.source]
    ? nameOf(token) + COPIES[token.source]
    : capital(sourceWords(token).subject) +
      " guesses " +
      nameOf(token) +
      (typeof token.q === "number" && token.q < 1 ? " with q " + probability(token.q) : "") +
      ".";
  return (
    guess +
    (verified
      ? " The target has scored it; the test comes next."
      : " The target has not looked at it yet.")
  );
}

// The rejected token of a round: a resampled one shares its place, and its candidates.
export function rejectedOf(round) {
  return round.tokens.find((token) => token.fate === "rejected") ?? null;
}

const SENTENCES = {
  accepted: (found, greedy) => (greedy ? greedyTest(found) : sampledTest(found)),
  rejected: (found, greedy) => (greedy ? greedyTest(found) : sampledTest(found)),
  discarded({ token, round }) {
    const rejected = rejectedOf(round);
    if (!rejected) return "The text had already ended, so this guess was never tested.";
    return (
      nameOf(token) +
      " was guessed to come after " +
      nameOf(rejected) +
      ", which was rejected. That prefix no longer exists, so this guess was never tested."
    );
  },
  resampled({ token, round }, greedy) {
    const rejected = rejectedOf(round);
    const instead = rejected ? " in place of " + nameOf(rejected) : "";
    if (greedy)
      return "The target's own first choice, " + withP(token, rejected) + "," + instead + ".";
    const row = inTop(token.residual_top ?? rejected?.residual_top, token.id);
    return (
      "Drawn" +
      instead +
      " from the residual: what the target gives beyond the draft, max(0, p \u2212 q), scaled to 1." +
      (row ? " There it has " + probability(row[2]) + "." : "")
    );
  },
  bonus({ token, round }, greedy) {
    const how = greedy ? "its first choice is " : "drawn from p, it is ";
    return (
      (round.drafted === 1 ? "The one guess was" : "All " + round.drafted + " guesses were") +
      " accepted. The same target call had already scored the next place: " +
      how +
      withP(token) +
      "."
    );
  },
  target({ token, round }, greedy) {
    const why =
      round.lane === "baseline"
        ? "One target call, one token: "
        : "Nothing was drafted in this round: ";
    return (
      why + (greedy ? "the target's first choice is " : "drawn from p, it is ") + withP(token) + "."
    );
  },
};

// At temperature 0 p is one-hot; the candidates carry the softmax instead.
function withP(token, place = token) {
  const row = inTop(place?.p_top, token.id);
  const value = row ? row[2] : token.p;
  return nameOf(token) + (typeof value === "number" ? " (" + probability(value) + ")" : "");
}

function greedyTest({ token }) {
  const first = firstChoice(token);
  const source = sourceWords(token);
  if (token.fate === "accepted") {
    const choice = first && first[0] === token.id ? named(first) : withP(token);
    return "The target's first choice is " + choice + "; " + source.same + ": accepted.";
  }
  if (!first || first[0] === token.id)
    return nameOf(token) + " is not the target's first choice: rejected.";
  const own = inTop(token.p_top, token.id);
  const tail = own ? " (" + probability(own[2]) + " with the target)" : "";
  return (
    "The target's first choice is " +
    named(first) +
    "; " +
    source.other +
    nameOf(token) +
    tail +
    ": rejected."
  );
}

function sampledTest({ token }) {
  const limit = acceptance(token);
  if (limit === null) return FATES[token.fate].sentence;
  const opening =
    token.source === "prompt lookup"
      ? "The guess was copied, so q is 1; the target gave " +
        nameOf(token) +
        " " +
        probability(token.p)
      : capital(sourceWords(token).subject) +
        " gave " +
        nameOf(token) +
        " " +
        probability(token.q) +
        ", the target " +
        probability(token.p);
  if (limit === 1 && token.fate === "accepted") return opening + ", no less: always accepted.";
  if (typeof token.u !== "number")
    return opening + ": accepted with probability " + probability(limit) + ".";
  const [shownLimit, shownU] = apart(limit, token.u);
  return (
    opening +
    ": accepted with probability " +
    shownLimit +
    "; u was " +
    shownU +
    (token.fate === "accepted" ? ", so it is kept." : ", so it is rejected.")
  );
}

// Where a copied guess came from.
export function origin({ token }) {
  if (typeof token.copied_from !== "number") return "";
  const matched =
    typeof token.matched === "number"
      ? "the last " + count(token.matched, "token") + " also stand earlier; "
      : "";
  return "Copied: " + matched + "this one followed them at position " + token.copied_from + ".";
}

// The short form, for the pointer: one line.
export function shortForm({ token, state }) {
  const fate = FATES[state ?? token.fate]?.name ?? token.fate;
  const numbers = [];
  if (state === "drafting")
    return [fate, typeof token.q === "number" ? "q " + probability(token.q) : ""]
      .join("   ")
      .trim();
  if (typeof token.p === "number") numbers.push("p " + probability(token.p));
  if (typeof token.q === "number") numbers.push("q " + probability(token.q));
  if (typeof token.u === "number") numbers.push("u " + probability(token.u));
  return [fate, ...numbers].join("   ");
}

export function describeToken(found) {
  if (!found) return "";
  const fate = FATES[found.state ?? found.token.fate]?.name ?? "";
  return nameOf(found.token) + ", " + fate + ". " + verdict(found);
}

export function roundSummary(round) {
  if (round.drafted === 0)
    return "Round " + (round.index + 1) + ": nothing drafted, one token of the target";
  return (
    "Round " + (round.index + 1) + ": " + round.accepted + " of " + round.drafted + " accepted"
  );
}

// One decision in a few words, for stepping: {round, kind, token}.
export function stepSummary({ round, kind, token }) {
  const name = token === null ? "" : nameOf(round.tokens[token]);
  if (kind === "draft") return "Drafted " + name;
  if (kind === "question") return "Kept or thrown away: " + name;
  if (kind === "verify")
    return "One target call scores " + count(round.drafted, "guess", "guesses");
  return name + " " + FATES[round.tokens[token].fate].name;
}
