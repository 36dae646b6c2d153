// One entry a fate: a sample, a few words, a sentence on hover and focus, a filter on click.

import { attachTip } from "./tooltip.js";
import { el, setAttr } from "./dom.js";
import { FATES } from "./words.js";

const ORDER = ["accepted", "rejected", "discarded", "resampled", "bonus", "drafting", "target"];

export function createLegend(root) {
  const group = root.querySelector(".sv-legend");
  const buttons = ORDER.map((fate) => {
    const sample = el(
      "span",
      { class: "sv-tok sv-sample", "data-f": fate, "aria-hidden": "true" },
      el("span", { class: "sv-b" }, "ab"),
    );
    const button = el(
      "button",
      { type: "button", class: "sv-legend-entry", "aria-pressed": "false" },
      sample,
      FATES[fate].name,
    );
    button.addEventListener("click", () => choose(root.dataset.only === fate ? null : fate));
    group.append(button);
    attachTip(root, button, FATES[fate].sentence + " Press to emphasise it.");
    return { fate, button };
  });

  function choose(only) {
    if (only === null) delete root.dataset.only;
    else root.dataset.only = only;
    for (const { fate, button } of buttons) setAttr(button, "aria-pressed", fate === only);
  }

  return { choose };
}
