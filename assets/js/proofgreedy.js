// The greedy proof: a line for each drafter, and where texts part, both of them token by token.

import { el } from "./dom.js";
import { count, quote } from "./format.js";

const BEFORE = 12; // tokens shown before texts part
const AFTER = 6;

export function greedyView(body) {
  let results = [];

  function draw() {
    body.replaceChildren(
      el("ul", { class: "proof-runs" }, ...results.map(line)),
      ...results.filter((result) => result.finding !== "equal").map(difference),
    );
  }

  return {
    show(found) {
      results = found;
      draw();
    },
    draw() {},
    verdict,
  };
}

function line(result) {
  const same = result.finding === "equal" ? "the target\u2019s own, token for token" : result.finding;
  return el(
    "li",
    {},
    el("span", { class: "proof-mark", "data-holds": String(result.holds) }, result.finding),
    el("span", { class: "proof-name" }, result.drafter),
    el("span", { class: "proof-detail" }, result.dtype + ", gamma " + result.gamma + ", " + count(result.tokens, "token") + ": " + same),
  );
}

function difference(result) {
  const [own, plain] = result.texts;
  const apart = result.parting?.index ?? Math.min(own.length, plain.length);
  return el(
    "div",
    { class: "proof-difference" },
    el("h4", {}, result.drafter + ": from token " + (apart + 1) + " on"),
    row("speculative", own, apart),
    row("target alone", plain, apart),
    el("p", {}, explained(result)),
  );
}

function row(name, tokens, apart) {
  const first = Math.max(0, apart - BEFORE);
  const text = el("p", { class: "proof-tokens", dir: "auto" }, first > 0 ? "\u2026" : "");
  tokens.slice(first, apart + AFTER).forEach((token, i) => {
    const at = first + i;
    const kind = at < apart ? null : at === apart ? "proof-apart" : "proof-after";
    text.append(el("span", { class: kind }, token));
  });
  return el("div", { class: "proof-row" }, el("span", { class: "proof-detail" }, name), text);
}

function explained(result) {
  const parting = result.parting;
  if (!parting) return "The texts end at different places: a bug.";
  const both = (values) => values[0].toFixed(3) + " and " + values[1].toFixed(3);
  const cause =
    result.finding === "near tie"
      ? "A near tie: within what " + result.dtype + " rounds, either may come first."
      : "A bug: the distance is more than " + result.dtype + " rounds.";
  return (
    "Logits of " + quote(parting.text) + " and " + quote(parting.baseline_text) + ": " + both(parting.logits) +
    " in the speculative call, " + both(parting.baseline_logits) + " in the baseline\u2019s. They lie apart by " +
    parting.gap.toFixed(3) + " at most; rounding reaches " + parting.rounding.toPrecision(2) + ". " + cause
  );
}

function verdict(results) {
  const bugs = results.filter((result) => !result.holds).length;
  const ties = results.filter((result) => result.finding === "near tie" && result.holds).length;
  if (bugs > 0) return "Not equal with " + count(bugs, "drafter") + ". See below.";
  if (ties > 0) return "Equal up to " + count(ties, "near tie") + ", where rounding decides. In float32 there is none.";
  return "Equal: every drafter wrote the target\u2019s own text, token for token.";
}
