// What would have happened otherwise, as far as the recorded numbers say. Every answer is
// {words, until}: what is known, and where that ends ("" where nothing is left open).

import { count, probability, quote } from "./format.js";
import { acceptance, firstChoice, isGreedy, nameOf, rejectedOf } from "./words.js";

const LISTED = 3;

// --- another u for one tested guess ---

export function canVaryU({ token, state, settings }) {
  const tested = state === "accepted" || state === "rejected";
  return tested && !isGreedy(settings) && typeof token.u === "number" && acceptance(token) !== null;
}

export function withOtherU(found, u) {
  const kept = u < acceptance(found.token);
  const same = kept === (found.token.fate === "accepted");
  if (same) return unchanged(found);
  return kept ? acceptedInstead(found) : rejectedInstead(found);
}

function unchanged({ token }) {
  const still = token.fate === "accepted" ? "Still accepted" : "Still rejected";
  const rest =
    token.fate === "accepted"
      ? "the guesses behind it have numbers of their own."
      : "the token that replaces it was drawn with a number of its own.";
  return { words: still + ", so nothing changes: " + rest, until: "" };
}

function rejectedInstead({ token, round, index }) {
  const lost = round.tokens.slice(index + 1, round.drafted).map(nameOf);
  const behind = lost.length
    ? " The guesses behind it, " + lost.join(", ") + ", would be discarded."
    : "";
  const drawn = overhang(token);
  return {
    words:
      "Rejected here: the round keeps " +
      count(index, "guess", "guesses") +
      " instead of " +
      round.accepted +
      "." +
      behind +
      (drawn ? " The residual max(0, p \u2212 q) has " + drawn + "." : ""),
    until: "Which token is drawn from the residual" + notKnownFrom(round, index),
  };
}

// Tokens of which p exceeds q, where both are known: quoted with the difference. A guess made
// with q = 1 leaves all others at q = 0.
function overhang(token) {
  const q = new Map((token.q_top ?? []).map((row) => [row[0], row[2]]));
  const certain = token.q === 1;
  const rows = (token.p_top ?? [])
    .filter((row) => row[0] !== token.id && (certain || q.has(row[0])))
    .map((row) => [row[1], row[2] - (certain ? 0 : q.get(row[0]))])
    .filter((row) => row[1] > 0)
    .sort((a, b) => b[1] - a[1]);
  return rows
    .slice(0, LISTED)
    .map(([text, over]) => quote(text) + " " + probability(over))
    .join(", ");
}

function acceptedInstead({ token, round, index }) {
  const next = round.tokens[index + 1];
  const drafted = index + 1 < round.drafted;
  const instead = round.tokens.find((other) => other.fate === "resampled");
  return {
    words:
      nameOf(token) +
      " would be kept" +
      (instead ? ", and " + nameOf(instead) + " not drawn in its place" : "") +
      "." +
      (drafted ? " The next guess, " + nameOf(next) + ", would be tested." : ""),
    until: drafted
      ? "The target's probability of " + nameOf(next) + notKnownFrom(round, index + 1)
      : "The target's token behind it" + notKnownFrom(round, index + 1),
  };
}

function notKnownFrom(round, index) {
  return " was not recorded: from token " + (round.position + index + 1) + " on nothing is known.";
}

// --- another gamma for one round ---

export function withOtherGamma(round, settings, gamma) {
  if (gamma === round.drafted) return { words: "As recorded.", until: "" };
  const rejected = rejectedOf(round);
  const over = round.accepted < gamma; // what ended the round comes first either way
  if (rejected && over) return sameRejection(round, gamma, rejected);
  if (round.tokens.length === round.drafted && gamma >= round.accepted)
    return { words: "The text ends among the accepted guesses either way.", until: "" };
  return gamma < round.drafted ? shorter(round, settings, gamma) : longer(round, settings);
}

function sameRejection(round, gamma, rejected) {
  const fewer = round.drafted - gamma;
  const change =
    fewer > 0
      ? count(fewer, "guess", "guesses") + " fewer would be drafted in vain."
      : "What the draft guesses behind it would be discarded.";
  return {
    words:
      "The same text: " +
      nameOf(rejected) +
      " is rejected either way, and ends the round. " +
      change,
    until: "",
  };
}

function shorter(round, settings, gamma) {
  const kept =
    gamma === 0
      ? "Nothing is drafted: the target writes one token."
      : "The round keeps " +
        count(gamma, "guess", "guesses") +
        ", then adds a token of the target's.";
  const place = round.tokens[gamma];
  if (isGreedy(settings)) return shorterGreedy(kept, round, gamma);
  return {
    words: kept + " It is drawn from p, where " + likeliest(place) + ".",
    until: "Which one is drawn" + notKnownFrom(round, gamma),
  };
}

// At temperature 0 that token is the target's first choice: the one that was kept, or drawn.
function shorterGreedy(kept, round, gamma) {
  const place = round.tokens[gamma];
  const same = place.fate === "accepted" ? place : round.tokens.at(-1);
  return {
    words: kept + " Its first choice is " + nameOf(same) + ", so the text stays the same.",
    until:
      "The next round would begin at token " +
      (round.position + gamma + 2) +
      "; what is drafted from there was not recorded.",
  };
}

function likeliest(place) {
  const rows = [...(place.p_top ?? [])].sort((a, b) => b[2] - a[2]).slice(0, LISTED);
  if (rows.length === 0) return "nothing was recorded";
  return rows.map((row) => quote(row[1]) + " has " + probability(row[2])).join(", ");
}

// Whether it was gamma that ended the draft: not the drafter itself, nor the end of the text.
function endedByGamma(round, settings) {
  if (round.drafted >= settings.max_new_tokens - round.position - 1) return false;
  if (typeof round.gamma === "number") return round.drafted >= round.gamma;
  return settings.schedule === "adaptive" || round.drafted >= settings.gamma;
}

function longer(round, settings) {
  if (!endedByGamma(round, settings))
    return { words: "Nothing changes: no more than this could be drafted here.", until: "" };
  const added = round.tokens[round.drafted];
  const kept = "All " + count(round.drafted, "guess", "guesses") + " stay.";
  if (isGreedy(settings))
    return {
      words: kept + " The text stays the same: the target's first choice is " + chosen(added) + ".",
      until: "Whether the draft guesses it as well" + notRecorded(round),
    };
  return { words: kept, until: "The next guess of the draft" + notKnownFrom(round, round.drafted) };
}

function chosen(token) {
  const first = firstChoice(token);
  return first && first[0] === token.id
    ? nameOf(token) + " (" + probability(first[2]) + ")"
    : nameOf(token);
}

const notRecorded = (round) =>
  " was not recorded: how rounds divide from token " +
  (round.position + round.drafted + 1) +
  " on is not known.";

// --- how many guesses a round like this keeps on average ---

// {low, high} of the expected number of accepted tokens, given the round's own p and q: the sum
// over guesses of the chance that it and all before it pass (arXiv 2211.17192, section 3.1, with
// the round's own probabilities in place of alpha). A guess that was never tested has no recorded
// p: it may add nothing, or as much as the guess before it. Null where a p or q is missing.
export function expectedAccepted(round) {
  let reach = 1;
  let low = 0;
  for (const token of round.tokens.slice(0, round.tested)) {
    const passes = acceptance(token);
    if (passes === null) return null;
    reach *= passes;
    low += reach;
  }
  return { low, high: low + reach * (round.drafted - round.tested) };
}

// --- another rule: a guess counts only where the target draws the same token ---

// {ratio, same, whole}: the chance that a guess of the draft passes here by min(1, p/q), the sum of
// min(p, q), and by equal draws, the sum of p q; over the candidates recorded for both, so at least
// this much unless `whole`, when they are all there are. Null where either law was not recorded.
export function passingRules({ p_top: ps = [], q_top: qs = [] }) {
  if (ps.length === 0 || qs.length === 0) return null;
  const q = new Map(qs.map((row) => [row[0], row[2]]));
  let ratio = 0;
  let same = 0;
  for (const [id, , p] of ps) {
    ratio += Math.min(p, q.get(id) ?? 0);
    same += p * (q.get(id) ?? 0);
  }
  const mass = (rows) => rows.reduce((sum, row) => sum + row[2], 0);
  return { ratio, same, whole: Math.min(mass(ps), mass(qs)) > 0.9995 };
}
