// Where a guess that no model made came from: the stretch of the text it was copied from, or the
// passage of the store, with the n-gram that matched marked in it.

import { el } from "./dom.js";
import { count } from "./format.js";
import { keyAt } from "./model.js";
import { firstOfSource, lookedUp, sourceOf } from "./sources.js";
import { nameOf, origin } from "./words.js";

const AROUND = 4; // tokens of context on both sides

export function copied(found, model) {
  return fromText(found, model) ?? fromStore(found, model);
}

function fromText(found, model) {
  const source = sourceOf(found);
  if (!source) return null;
  const before = promptLength(model);
  const last = Math.min(source.from + AROUND, before + found.round.position - 1);
  const pieces = [];
  for (let i = Math.max(0, source.start - AROUND); i <= last; i += 1)
    pieces.push([shownAt(found, model, i), classOf(source, i)]);
  const where = source.from < before ? "from the prompt" : "from the text so far";
  return block("Copied " + where, pieces, origin(found));
}

// The passage is quoted whole. Where the matched words or the guess do not stand at its head (the
// store holds many places, and this is the first), nothing is marked.
function fromStore(found, model) {
  const passage = firstOfSource(found.round, found.token).passage;
  if (!passage || found.token.source === "target") return null;
  const { start, end } = lookedUp(found, promptLength(model));
  let matched = "";
  for (let i = start; i < end; i += 1) matched += textAt(found, model, i);
  const guesses = found.round.tokens.slice(0, found.index).map((token) => token.text);
  const pieces = marked(passage, matched, guesses.join(""), found.token.text);
  return block("Found in the store", pieces, storeWords(found, pieces));
}

function marked(passage, matched, between, guess) {
  if (matched === "" || !passage.startsWith(matched)) return [[passage, null]];
  const rest = passage.slice(matched.length);
  const head = [matched, "sv-source-match"];
  if (guess === "" || !rest.startsWith(between + guess)) return [head, [rest, null]];
  const behind = rest.slice(between.length + guess.length);
  return [head, [between, null], [guess, "sv-source-hit"], [behind, null]];
}

function storeWords({ token }, pieces) {
  const hit = pieces.some(([, kind]) => kind === "sv-source-hit");
  return (
    "The last " +
    count(token.matched ?? 0, "token") +
    " also stand in text the target wrote before; this is one such place" +
    (hit ? "." : ". " + nameOf(token) + " followed in others.")
  );
}

function block(title, pieces, words) {
  const quoted = el("p", { class: "sv-source", dir: "auto" });
  for (const [text, kind] of pieces) if (text) quoted.append(el("span", { class: kind }, text));
  return el(
    "div",
    { class: "sv-copied" },
    el("h4", {}, title),
    quoted,
    el("p", { class: "sv-muted" }, words),
  );
}

const promptLength = (model) => model.start?.prompt_tokens?.length ?? 0;

function tokenAt({ round }, model, place) {
  const before = promptLength(model);
  if (place < before) return { text: model.start.prompt_tokens[place][1] };
  const [, r, i] = (keyAt(model.lanes[round.lane], place - before) ?? "").split(":");
  return model.lanes[round.lane].rounds[r]?.tokens[i];
}

const textAt = (found, model, place) => tokenAt(found, model, place)?.text ?? "";

// With something to see where a token adds no text of its own.
const shownAt = (found, model, place) =>
  textAt(found, model, place) || (tokenAt(found, model, place)?.label ?? "");

function classOf({ from, start, end }, place) {
  if (place === from) return "sv-source-hit";
  return place >= start && place < end ? "sv-source-match" : null;
}

// The tokens of the lane itself that light up: those a guess was copied from and, for a guess from
// the store, the words that were looked up: [key, class].
export function sourceKeys(found, model) {
  const before = promptLength(model);
  const lane = model.lanes[found.round.lane];
  const lit = placesOf(found, before).filter(([place]) => place >= before);
  return lit.map(([place, kind]) => [keyAt(lane, place - before), kind]);
}

function placesOf(found, before) {
  const source = sourceOf(found);
  if (source) {
    const places = Array.from({ length: source.end - source.start }, (_, i) => source.start + i);
    return [...new Set([source.from, ...places])].map((place) => [place, classOf(source, place)]);
  }
  if (!firstOfSource(found.round, found.token).passage || found.token.source === "target")
    return [];
  const { start, end } = lookedUp(found, before);
  return Array.from({ length: end - start }, (_, i) => [start + i, "sv-source-match"]);
}
