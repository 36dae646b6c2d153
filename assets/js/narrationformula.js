// The narration as formulas, with the numbers of the moment put in. Symbols as in arXiv 2211.17192:
// x is a guess, p the target's law, q the draft's, gamma the length of the draft.

import { inList } from "./evidence.js";
import { apart, milliseconds, probability, rate, share } from "./format.js";
import { acceptance, firstChoice, isGreedy, nameOf, rejectedOf } from "./words.js";

export function formulaLines(moment) {
  return FORMULAS[moment.kind](moment, isGreedy(moment.settings));
}

const DIGITS = "\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089";
const sub = (number) => [...String(number)].map((digit) => DIGITS[Number(digit)]).join("");
const x = (index) => "x" + sub(index + 1);

// "text, x1, x2": what stands before guess `index`.
function prefix(index) {
  const before = Array.from({ length: Math.min(index, 2) }, (_, i) => x(i));
  if (index > 3) before.push("\u2026");
  if (index > 2) before.push(x(index - 1));
  return ["text", ...before].join(", ");
}

const FORMULAS = {
  idle: () => ["accept x when u < min(1, p(x) / q(x)), u uniform on [0, 1)"],
  moving: ({ figures }) => figureLines(figures),
  whole: ({ figures }) => [...figureLines(figures), speedupLine(figures)],
  draft: ({ token, index, verified }, greedy) => [
    greedy
      ? x(index) + " = argmax q(\u00b7 | " + prefix(index) + ") = " + nameOf(token)
      : x(index) + " ~ q(\u00b7 | " + prefix(index) + "): " + nameOf(token),
    greedy || typeof token.q !== "number" ? "" : "q(" + x(index) + ") = " + probability(token.q),
    verified && !greedy && typeof token.p === "number"
      ? "p(" + x(index) + ") = " + probability(token.p)
      : "",
  ],
  verify: ({ round, alone }) => {
    const seconds = round.verifyEnd - round.draftEnd;
    return [
      "p(\u00b7 | text), \u2026, p(\u00b7 | " +
        prefix(round.drafted) +
        "): " +
        (round.drafted + 1) +
        " laws, one forward",
      alone === null
        ? ""
        : "v = " +
          milliseconds(seconds) +
          " / " +
          milliseconds(alone) +
          " = " +
          share(seconds / alone),
    ];
  },
  accepted: testLines,
  rejected: (moment, greedy) => [...testLines(moment, greedy), ...residualLines(moment, greedy)],
  discarded: ({ index, round }) =>
    rejectedOf(round)
      ? [x(index) + " ~ q(\u00b7 | " + prefix(index) + ") with " + x(round.accepted) + " rejected"]
      : [x(index) + " lies behind the end of the text"],
  resampled: ({ token, round }, greedy) => {
    const rejected = rejectedOf(round);
    if (greedy) return ["argmax p(\u00b7 | " + prefix(round.accepted) + ") = " + nameOf(token)];
    const row = inList(rejected?.residual_top, token.id);
    return [
      "x ~ max(0, p \u2212 q) / \u03a3 max(0, p \u2212 q): " + nameOf(token),
      row ? "residual(x) = " + probability(row[2]) : "",
      ...residualSum(rejected, row),
    ];
  },
  bonus: ({ token, round }, greedy) => [
    (greedy ? "argmax p(\u00b7 | " : "x ~ p(\u00b7 | ") +
      prefix(round.drafted) +
      ")" +
      (greedy ? " = " : ": ") +
      nameOf(token),
    "tokens = \u03b3 + 1 = " + round.committed,
  ],
  target: ({ token }, greedy) => [
    (greedy ? "argmax p(\u00b7 | text) = " : "x ~ p(\u00b7 | text): ") + nameOf(token),
  ],
};

function figureLines({ accepted, drafted, tested, tokens, target_calls: calls, ...values }) {
  return [
    ratio("TAR = accepted / drafted", accepted, drafted, values.tar),
    ratio("alpha = accepted / tested", accepted, tested, values.alpha),
    ratio("tokens per target call", tokens, calls, values.tokens_per_target_call),
  ];
}

function speedupLine({ tokens_per_s: own, baseline_tokens_per_s: alone, speedup }) {
  if (typeof speedup !== "number") return "";
  return ratio("speedup = tokens/s / tokens/s alone", rate(own), rate(alone), speedup);
}

function ratio(name, part, whole, value) {
  return name + " = " + part + " / " + whole + " = " + share(value);
}

function testLines({ token, index }, greedy) {
  if (greedy) {
    const first = firstChoice(token);
    const best = first ? nameOf({ text: first[1] }) : "not recorded";
    const sign = token.fate === "accepted" ? " = " : " \u2260 ";
    return [
      "argmax p = " + best,
      x(index) + " = " + nameOf(token) + sign + "argmax p: " + token.fate,
    ];
  }
  const limit = acceptance(token);
  if (limit === null) return ["p or q was not recorded"];
  const lines = [
    "min(1, p/q) = min(1, " +
      probability(token.p) +
      " / " +
      probability(token.q) +
      ") = " +
      probability(limit),
  ];
  if (typeof token.u !== "number") return lines;
  const [shownU, shownLimit] = apart(token.u, limit);
  const sign = token.u < limit ? " < " : " \u2265 ";
  return [...lines, "u = " + shownU + sign + shownLimit + ": " + token.fate];
}

function residualLines({ round }, greedy) {
  if (greedy) return [];
  const added = round.tokens.find((token) => token.fate === "resampled");
  const rejected = rejectedOf(round);
  return residualSum(rejected, added ? inList(rejected.residual_top, added.id) : null);
}

// The mass of max(0, p - q) over the whole vocabulary, from one token of which p, q and the
// normalised residual are all recorded; what it leaves of 1 is the chance of acceptance here.
function residualSum(rejected, row) {
  const p = row && inList(rejected.p_top, row[0])?.[2];
  const q = row && (inList(rejected.q_top, row[0])?.[2] ?? (rejected.q === 1 ? 0 : undefined));
  if (typeof p !== "number" || typeof q !== "number" || !(row[2] > 0) || p <= q) return [];
  const sum = (p - q) / row[2];
  if (!(sum <= 1)) return [];
  return [
    "\u03a3 max(0, p \u2212 q) = (" +
      probability(p) +
      " \u2212 " +
      probability(q) +
      ") / " +
      probability(row[2]) +
      " = " +
      probability(sum),
    "\u03a3 min(p, q) = 1 \u2212 that = " +
      probability(1 - sum) +
      ": the chance that a guess passes here",
  ];
}
