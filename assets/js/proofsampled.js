// The sampled proof: how the p-value moved, the commonest texts of both arms, and what a test of
// this size can see at all.

import { el } from "./dom.js";
import { count, visible } from "./format.js";
import { linear, ticks } from "./scale.js";
import { svg } from "./svg.js";

const HEIGHT = 200;
const MARGIN = { left: 36, right: 12, top: 12, bottom: 34 };

export function sampledView(body) {
  let results = [];

  function draw() {
    const last = results.at(-1);
    if (!last || body.clientWidth === 0) return;
    const complete = last.distance !== null;
    const width = Math.min(body.clientWidth, 560);
    body.replaceChildren(
      el("figure", {}, el("figcaption", {}, "p-value as the samples grow; only the last one counts"), running(results, width)),
      ...(complete ? [facts(last), texts(last)] : []),
    );
  }

  return {
    show(found) {
      results = found;
      draw();
    },
    draw,
    verdict,
  };
}

function running(results, width) {
  const { left, right, top, bottom } = MARGIN;
  const { planned, fails_below: limit } = results[0];
  const x = linear([0, planned], [left, width - right]);
  const y = linear([0, 1], [HEIGHT - bottom, top]);
  const known = results.filter((result) => result.p_value !== null);
  const path = known.map((r, i) => (i ? "L" : "M") + x(r.n).toFixed(1) + " " + y(r.p_value).toFixed(1)).join("");
  const across = (value, kind) => svg("path", { class: kind, d: "M" + left + " " + y(value) + "H" + (width - right) });
  return svg(
    "svg",
    { class: "law-svg", width, height: HEIGHT, role: "img", "aria-label": pathInWords(known) },
    ...ticks([0, 1], 4).map(({ value, text }) =>
      svg("g", {}, across(value, "proof-grid"), svg("text", { class: "proof-tick", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, text)),
    ),
    ...ticks([0, planned], 5, { whole: true }).map(({ value, text }) =>
      svg("text", { class: "proof-tick", x: x(value), y: HEIGHT - bottom + 16, "text-anchor": "middle" }, text),
    ),
    svg("text", { class: "proof-tick", x: width - right, y: HEIGHT - 4, "text-anchor": "end" }, "continuations in each arm"),
    across(limit, "proof-limit"),
    svg("text", { class: "proof-tick", x: left + 4, y: y(limit) - 6 }, "fails below " + limit),
    svg("path", { class: "proof-line", d: path }),
    ...known.map((r) => svg("circle", { class: "proof-dot", cx: x(r.n), cy: y(r.p_value), r: 3 })),
  );
}

// Why there is no p-value: one text only, or none that came up often enough.
function untested(last) {
  return last.texts.length === 1
    ? "Every continuation began alike: raise the temperature"
    : "No two texts came up often enough to be tested: draw more, or compare fewer tokens";
}

function pathInWords(known) {
  if (known.length === 0) return "No p-value yet";
  const last = known.at(-1);
  return "p-value after " + last.n + " continuations: " + last.p_value.toFixed(3);
}

function facts(last) {
  const distance = last.distance;
  const rows = [
    ["p-value", last.p_value === null ? untested(last) : last.p_value.toFixed(3)],
    ["total variation", distance.measured.toFixed(3) + " (bootstrap, 95 %: " + distance.low.toFixed(3) + " to " + distance.high.toFixed(3) + ")"],
    ["two samples of one law show", distance.by_chance.toFixed(3) + " on average, under " + distance.by_chance_95.toFixed(3) + " in 19 of 20 cases"],
    ["a difference this test finds", last.smallest === null ? "\u2014" : last.smallest.toFixed(2) + " or more, with probability 0.8"],
    ["size", count(last.n, "continuation") + " in each arm, " + count(last.tokens, "token") + " compared, " + count(last.degrees, "degree") + " of freedom"],
    ["verified as", last.variant],
    ["guesses", last.drafted + " drafted, " + last.rejected + " rejected; temperature " + last.temperature + ", " + last.dtype],
  ];
  return el("dl", { class: "proof-facts" }, ...rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function texts(last) {
  const most = Math.max(...last.texts.flatMap(([, own, plain]) => [own, plain]), 1);
  return el(
    "table",
    { class: "proof-texts" },
    el("caption", {}, "The commonest beginnings, and how often each arm wrote them"),
    el("thead", {}, el("tr", {}, ...["text", "speculative", "target alone"].map((name) => el("th", { scope: "col" }, name)))),
    el(
      "tbody",
      {},
      ...last.texts.map(([text, own, plain]) =>
        el("tr", {}, el("th", { scope: "row" }, visible(text)), tally(own, most, "own"), tally(plain, most, "plain")),
      ),
    ),
  );
}

function tally(value, most, kind) {
  const bar = el("span", { class: "proof-tally proof-tally-" + kind });
  bar.style.width = (value / most) * 100 + "%";
  return el("td", {}, bar, el("span", {}, String(value)));
}

function verdict(results) {
  const last = results.at(-1);
  if (!last) return "";
  if (last.p_value === null) return untested(last) + ".";
  if (last.holds)
    return "No difference found: two samples of one law differ this much or more in " + (last.p_value * 100).toFixed(0) + " of 100 cases. A difference of " + last.smallest.toFixed(2) + " in total variation would have been found with probability 0.8.";
  return "A difference: two samples of one law would differ this much in fewer than 1 of 1000 cases. This is not the target\u2019s law.";
}
