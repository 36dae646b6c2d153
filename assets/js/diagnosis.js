// A diagnosis in words: what was measured, what limits it and by how much, and what to do.

import { el } from "./dom.js";
import { times } from "./format.js";

export function mountDiagnosis(element) {
  const root = element.querySelector(".sv-diagnosis");

  function show(value) {
    const { diagnosis, followed, compared } = value ? JSON.parse(value) : {};
    root.replaceChildren(...(diagnosis ? parts(diagnosis, [followed, compared]) : []));
    root.hidden = !diagnosis;
  }

  return { show };
}

export function parts(diagnosis, remarks = []) {
  const { headline, facts, limits, advice } = diagnosis;
  return [
    el("h3", {}, "Diagnosis"),
    el("p", { class: "sv-diagnosis-headline" }, unbroken(headline)),
    ...remarks.map((text) => text && el("p", { class: "sv-diagnosis-remark" }, unbroken(text))),
    advice && el("p", { class: "sv-diagnosis-advice" }, unbroken(advice.words)),
    limits.length > 0 && limitList(limits),
    facts.length > 0 && factList(facts),
  ].filter(Boolean);
}

// A number and its per cent sign stay on one line.
const unbroken = (text) => text.replace(/(\d) %/g, "$1\u00a0%");

function limitList(limits) {
  const most = Math.max(...limits.map((limit) => limit.after));
  return el(
    "div",
    { class: "sv-limits" },
    el("h4", {}, "What limits it, and what it would be without"),
    el("ul", {}, ...limits.map((limit) => limitItem(limit, most))),
  );
}

// The bar is the speedup: what there is, and what would come on top.
function limitItem(limit, most) {
  const part = (value) => "width:" + ((100 * value) / most).toFixed(1) + "%";
  return el(
    "li",
    { class: "sv-limit" },
    el("span", { class: "sv-limit-name" }, limit.name),
    el(
      "span",
      { class: "sv-limit-bar", "aria-hidden": "true" },
      el("i", { class: "sv-limit-now", style: part(limit.before) }),
      el("i", { class: "sv-limit-more", style: part(limit.after - limit.before) }),
    ),
    el("span", { class: "sv-limit-value" }, times(limit.before) + " \u2192 " + times(limit.after)),
    el("span", { class: "sv-limit-words" }, unbroken(limit.words)),
  );
}

function factList(facts) {
  return el(
    "details",
    { class: "sv-facts-list", open: true },
    el("summary", {}, "Measured"),
    el("ul", {}, ...facts.map((fact) => el("li", {}, unbroken(fact)))),
  );
}
