// The exact proof: one line a case, and of the chosen case both laws, one lying on the other.

import { el, setText } from "./dom.js";
import { count } from "./format.js";
import { linear } from "./scale.js";
import { svg } from "./svg.js";

const HEIGHT = 180;
const TOP = 10;
const NAMED = 32; // texts that get their name written below: more would not be legible

export function exactView(body) {
  const list = el("div", { class: "proof-cases", role: "group", "aria-label": "Cases" });
  const box = el("div", { class: "proof-laws" });
  const caption = el("figcaption", {});
  const key = el(
    "p",
    { class: "law-key" },
    el("span", { class: "law-key-kept" }, "written by the loop"),
    el("span", { class: "law-key-wanted" }, "the target alone"),
  );
  body.append(list, el("figure", {}, caption, key, box));
  let results = [];
  let chosen = null; // by hand; else the first that fails, or the last

  function show(found) {
    results = found;
    if (results.length <= 1) chosen = null;
    draw();
  }

  function draw() {
    const shown = results[chosen ?? telling(results)];
    if (!shown || box.clientWidth === 0) return;
    list.replaceChildren(...results.map((result, i) => line(result, result === shown, () => pick(i))));
    setText(caption, "Every text of \u201c" + shown.case + "\u201d and its probability, the target\u2019s likeliest first");
    box.replaceChildren(twoLaws(shown, box.clientWidth));
  }

  function pick(index) {
    chosen = index;
    draw();
    list.children[index].focus();
  }

  return { show, draw, verdict };
}

function telling(results) {
  const failed = results.findIndex((result) => !result.holds);
  return failed >= 0 ? failed : results.length - 1;
}

function line(result, current, pick) {
  const texts = count(result.texts.length, "text");
  return el(
    "button",
    { type: "button", class: "proof-case", "aria-pressed": String(current), onclick: pick },
    el("span", { class: "proof-mark", "data-holds": String(result.holds) }, result.holds ? "equal" : "broken"),
    el("span", { class: "proof-name" }, result.case),
    el("span", { class: "proof-detail" }, count(result.paths, "path") + ", " + texts),
    el("span", { class: "proof-number" }, gapText(result.gap)),
  );
}

const gapText = (gap) => (gap < 1e-12 ? gap.toExponential(0) : gap.toFixed(4));

// Written as filled bars, the target alone as outlines over them.
function twoLaws(result, width) {
  const names = result.texts.length <= NAMED;
  const base = HEIGHT - (names ? 22 : 6);
  const most = Math.max(...result.texts.flatMap(([, target, written]) => [target, written]));
  const y = linear([0, most], [base, TOP]);
  const slot = width / result.texts.length;
  const thick = Math.max(1, slot * 0.8);
  const bars = result.texts.flatMap(([text, target, written], i) => {
    const x = slot * (i + 0.5) - thick / 2;
    const outline = "M" + x + " " + base + "V" + y(target) + "h" + thick + "V" + base;
    return [
      svg("rect", { class: "law-kept", x, y: y(written), width: thick, height: base - y(written) }),
      svg("path", { class: "law-wanted", d: outline }, svg("title", {}, titleOf(text, target, written))),
      ...(names ? [svg("text", { class: "law-name", x: slot * (i + 0.5), y: HEIGHT - 6 }, text)] : []),
    ];
  });
  const label = "Both laws; largest difference " + gapText(result.gap);
  return svg("svg", { class: "law-svg", width, height: HEIGHT, role: "img", "aria-label": label }, ...bars);
}

const titleOf = (text, target, written) =>
  text + ": the target " + target.toFixed(6) + ", the loop " + written.toFixed(6);

function verdict(results) {
  const failed = results.filter((result) => !result.holds);
  const paths = results.reduce((total, result) => total + result.paths, 0);
  if (failed.length === 0) {
    const gap = Math.max(...results.map((result) => result.gap));
    return (
      "Holds: in all " + count(results.length, "case") + ", " + paths + " paths through the loop, every text has the target\u2019s own probability (largest difference " + gap.toExponential(0) + ")."
    );
  }
  const worst = Math.max(...failed.map((result) => result.gap));
  return "Broken in " + failed.length + " of " + count(results.length, "case") + ": some text is off by " + worst.toFixed(3) + ".";
}
