// The evidence for one decision, drawn: the test as a number line, the likeliest candidates of both
// models, and the residual.

import { el } from "./dom.js";
import { probability, visible } from "./format.js";
import { acceptance, isGreedy, rejectedOf } from "./words.js";

const ROWS = 8;
const RESIDUAL_ROWS = 5;

export const inList = (rows, id) => (rows ?? []).find((row) => row[0] === id) ?? null;

// A resampled token shares the candidates of the rejected one.
function placeOf(token, round) {
  return token.fate === "resampled" ? (rejectedOf(round) ?? token) : token;
}

// p, q and u as figures. Greedy runs show the softmax, for p itself is one-hot there.
export function numbers({ token, round, settings, state, verified }) {
  const greedy = isGreedy(settings);
  const p = greedy ? (inList(placeOf(token, round).p_top, token.id)?.[2] ?? token.p) : token.p;
  const q = greedy ? (inList(token.q_top, token.id)?.[2] ?? token.q) : token.q;
  const open = state === "drafting";
  const cells = [];
  if (!open || (verified && typeof p === "number")) cells.push(number("p", "target", p));
  if (token.source !== "target" && typeof q === "number") cells.push(number("q", "draft", q));
  if (!open && typeof token.u === "number") cells.push(number("u", "drawn", token.u));
  return el("dl", { class: "sv-numbers" }, ...cells);
}

function number(name, whose, value) {
  return el(
    "div",
    { class: "sv-number" },
    el("dt", {}, el("i", {}, name), " " + whose),
    el("dd", {}, probability(value)),
  );
}

// 0 to 1; kept left of min(1, p/q), thrown away right of it; u is where the draw fell.
export function numberLine({ token, settings, state }) {
  const limit = acceptance(token);
  if (limit === null || isGreedy(settings) || typeof token.u !== "number" || state === "drafting")
    return null;
  const label =
    "Number line from 0 to 1: kept below " + probability(limit) + "; u was " + probability(token.u);
  const zone = el("span", { class: "sv-line-kept" });
  zone.style.width = limit * 100 + "%";
  return el(
    "div",
    { class: "sv-line", role: "img", "aria-label": label },
    lineMark("sv-line-u", token.u, "u " + probability(token.u), 0.2),
    el("div", { class: "sv-line-track" }, zone),
    lineMark("sv-line-limit", limit, "min(1, p/q) " + probability(limit), 0.4),
    el("span", { class: "sv-line-zero" }, "0"),
    el("span", { class: "sv-line-one" }, "1"),
  );
}

function lineMark(kind, value, text, edge) {
  const mark = el("span", { class: kind }, el("b", {}, text));
  mark.style.left = value * 100 + "%";
  mark.dataset.side = value > 1 - edge ? "end" : value < edge ? "start" : "middle";
  return mark;
}

// The likeliest tokens of p and q side by side, the token itself marked. Where the place was
// rejected, what p has beyond q is drawn on p's bar.
export function candidates({ token, round, settings, state, verified }) {
  const place = placeOf(token, round);
  const open = state === "drafting" && !verified;
  const p = open ? [] : (place.p_top ?? []);
  const q = place.q_top ?? [];
  if (p.length === 0 && q.length === 0) return null;
  const rows = merged(p, q);
  const marked = rows.findIndex((row) => row.id === token.id);
  const top = rows.slice(0, ROWS);
  if (marked >= ROWS) top[ROWS - 1] = rows[marked];
  const residual = place.fate === "rejected" && state !== "drafting" && !isGreedy(settings);
  return el(
    "div",
    { class: "sv-candidates" },
    el(
      "h4",
      {},
      "Likeliest tokens ",
      el("span", { class: "sv-muted" }, isGreedy(settings) ? "at temperature 1" : ""),
    ),
    candidateHead(p.length > 0, q.length > 0),
    el(
      "ol",
      {},
      ...top.map((row) =>
        candidate(row, row.id === token.id, p.length > 0, q.length > 0, residual),
      ),
    ),
  );
}

function merged(p, q) {
  const rows = new Map();
  for (const [id, text, value] of p) rows.set(id, { id, text, p: value, q: null });
  for (const [id, text, value] of q)
    rows.set(id, { ...(rows.get(id) ?? { id, text, p: null }), q: value });
  const weight = (row) => Math.max(row.p ?? 0, row.q ?? 0);
  return [...rows.values()].sort((a, b) => weight(b) - weight(a));
}

function candidateHead(withP, withQ) {
  const column = (kind) =>
    el(
      "span",
      { class: "sv-candidate-" + kind },
      el("i", { class: "sv-bar", "data-kind": kind }),
      kind,
    );
  return el(
    "div",
    { class: "sv-candidate sv-candidate-head", "aria-hidden": "true" },
    el("span", {}),
    el("span", {}),
    withP ? column("p") : null,
    withQ ? column("q") : null,
  );
}

function candidate(row, own, withP, withQ, withResidual) {
  const bars = [];
  if (withP) bars.push(bar("p", row.p, withResidual ? beyond(row) : 0));
  if (withQ) bars.push(bar("q", row.q, 0));
  return el(
    "li",
    { class: "sv-candidate" + (own ? " sv-own" : "") },
    el("span", { class: "sv-candidate-text", dir: "auto" }, visible(row.text) || "\u00b7"),
    el("span", { class: "sv-bars" }, ...bars),
    withP ? el("span", { class: "sv-candidate-p" }, probability(row.p)) : null,
    withQ ? el("span", { class: "sv-candidate-q" }, probability(row.q)) : null,
  );
}

// max(0, p - q), known only where both were recorded.
function beyond(row) {
  return row.p !== null && row.q !== null ? Math.max(0, row.p - row.q) : 0;
}

function bar(kind, value, part) {
  const fill = el("span", { class: "sv-bar", "data-kind": kind });
  fill.style.width = Math.max((value ?? 0) * 100, value ? 0.5 : 0) + "%";
  if (part > 0) {
    const excess = el("span", { class: "sv-bar-beyond" });
    excess.style.width = (part / value) * 100 + "%";
    fill.append(excess);
  }
  return fill;
}

// The residual at a rejection: what the target gives beyond the draft, scaled to 1, and which
// token was drawn from it.
export function residual({ token, round, settings, state }) {
  const rejected = rejectedOf(round);
  const rows =
    rejected?.residual_top ?? token.residual_top ?? round.tokens.at(-1)?.residual_top ?? [];
  const concerned = token.fate === "rejected" || token.fate === "resampled";
  if (!concerned || rows.length === 0 || isGreedy(settings) || state === "drafting") return null;
  const drawn = round.tokens.find((other) => other.fate === "resampled");
  const top = rows.slice(0, RESIDUAL_ROWS);
  const missing = drawn && inList(rows, drawn.id);
  if (missing && !top.includes(missing)) top[RESIDUAL_ROWS - 1] = missing;
  return el(
    "div",
    { class: "sv-candidates sv-residual" },
    el(
      "h4",
      {},
      "Residual ",
      el("span", { class: "sv-muted" }, "what p has beyond q, scaled to 1"),
    ),
    el("ol", {}, ...top.map(([id, text, value]) => residualRow(text, value, id === drawn?.id))),
  );
}

function residualRow(text, value, drawn) {
  return el(
    "li",
    { class: "sv-candidate" + (drawn ? " sv-own" : "") },
    el("span", { class: "sv-candidate-text", dir: "auto" }, visible(text) || "\u00b7"),
    el("span", { class: "sv-bars" }, bar("residual", value, 0)),
    el("span", { class: "sv-candidate-p" }, probability(value)),
    el("span", { class: "sv-candidate-q" }, drawn ? "drawn" : ""),
  );
}
