// The pictures of the guided walk, from the numbers of its round.

import { el } from "./dom.js";
import { inList } from "./evidence.js";
import { count, milliseconds, probability } from "./format.js";
import { firstChoice, nameOf, rejectedOf } from "./words.js";

export const PICTURES = { triangle, areas, times };

// One row for each beginning the pass scores, with what the target finds likeliest behind it.
function triangle(model, round) {
  const rows = [];
  for (let i = 0; i <= round.drafted; i += 1) {
    const before = round.tokens
      .slice(0, i)
      .map((token) => el("span", { class: "sv-cell", dir: "auto" }, nameOf(token)));
    rows.push(
      el(
        "li",
        {},
        el("span", { class: "sv-cell sv-cell-text" }, "text"),
        ...before,
        el("span", { class: "sv-cell-then" }, "\u2192 " + likeliestBehind(round, i)),
      ),
    );
  }
  return el("ol", { class: "sv-triangle" }, ...rows);
}

// Rows behind a rejection were scored, but not recorded.
function likeliestBehind(round, i) {
  const place = round.tokens[i];
  const first = place && place.fate !== "discarded" ? firstChoice(place) : null;
  return first ? nameOf({ text: first[1] }) + " " + probability(first[2]) : "\u2014";
}

// p at the rejection, split in what accepting can give, min(p, q), and the residual.
function areas(model, round) {
  const rejected = rejectedOf(round);
  const rows = [...(rejected?.p_top ?? [])].sort((a, b) => b[2] - a[2]).slice(0, 5);
  const known = rows
    .map(([id, text, p]) => [text, p, qOf(rejected, id)])
    .filter((row) => row[2] !== null);
  if (known.length === 0) return null;
  return el(
    "div",
    {},
    el("ol", { class: "sv-areas" }, ...known.map(([text, p, q]) => areaRow(text, p, q))),
    el(
      "p",
      { class: "sv-areas-key" },
      el("i", { class: "sv-area-common" }),
      "min(p, q) ",
      el("i", { class: "sv-area-beyond" }),
      "max(0, p \u2212 q); together p",
    ),
  );
}

function qOf(rejected, id) {
  if (rejected.q === 1) return id === rejected.id ? 1 : 0;
  return inList(rejected.q_top, id)?.[2] ?? null;
}

function areaRow(text, p, q) {
  const common = Math.min(p, q);
  const part = (kind, value) => {
    const bar = el("span", { class: kind });
    bar.style.width = value * 100 + "%";
    return bar;
  };
  return el(
    "li",
    {},
    el("span", { class: "sv-candidate-text", dir: "auto" }, nameOf({ text })),
    el(
      "span",
      { class: "sv-area" },
      part("sv-area-common", common),
      part("sv-area-beyond", p - common),
    ),
    el("span", { class: "sv-candidate-p" }, probability(p)),
  );
}

// The round's draft and target call beside as many calls of the target alone, to one scale.
function times(model, round) {
  const lane = model.lanes.baseline;
  const alone = lane.seconds / lane.tokens;
  const longest = Math.max(round.end - round.start, alone * round.committed);
  const bar = (kind, seconds) => {
    const part = el("span", { class: kind });
    part.style.width = (seconds / longest) * 100 + "%";
    return part;
  };
  const calls = Array.from({ length: round.committed }, () => bar("sv-time-call", alone));
  return el(
    "dl",
    { class: "sv-times" },
    el("dt", {}, "this round, " + milliseconds(round.end - round.start)),
    el(
      "dd",
      {},
      bar("sv-time-draft", round.draftEnd - round.start),
      bar("sv-time-call", round.end - round.draftEnd),
    ),
    el(
      "dt",
      {},
      count(round.committed, "token") + " alone, " + milliseconds(alone * round.committed),
    ),
    el("dd", {}, ...calls),
  );
}
