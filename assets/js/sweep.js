// The results of a sweep as they come: how far it is, what to take from it, the table, the figures.

import { parts } from "./diagnosis.js";
import { el, setHidden, setText } from "./dom.js";
import { createFigure } from "./figure.js";
import { DASH, rate, times } from "./format.js";
import { createTable } from "./sweeptable.js";

export function mountSweep(element, { definitions, plotly }) {
  const part = (name) => element.querySelector(".sv-sweep-" + name);
  const table = createTable(part("table"), definitions);
  const against = part("against");
  const figures = [];

  function show(value) {
    const view = value ? JSON.parse(value) : {};
    showStatus(view.status ?? {});
    setHidden(part("results"), !view.rows?.length);
    setHidden(part("empty"), Boolean(view.rows?.length));
    if (!view.rows?.length) return;
    part("advice").replaceChildren(...parts(view.diagnosis));
    table.show(view.rows);
    showAgainst(view.against ?? []);
    view.figures.forEach((figure, i) => {
      figures[i] ??= createFigure(part("figures"), plotly);
      figures[i].show(figure);
    });
  }

  function showStatus({ text = "", kind = "info", made = 0, total = 0 }) {
    const shown = part("status");
    setText(shown, text);
    shown.dataset.kind = kind;
    const bar = part("progress");
    setHidden(bar, kind !== "busy");
    bar.max = Math.max(1, total);
    bar.value = made;
  }

  function showAgainst(lines) {
    setHidden(against, lines.length === 0);
    const heading = ["Method", "Gamma", "Tokens/s, prompt included", "Of generate", "Same text"];
    const cells = lines.map((line) => [
      line.name,
      line.gamma || DASH,
      rate(line.tokens_per_s),
      times(line.times),
      line.same + "/" + line.compared,
    ]);
    const row = (name, values) =>
      el("tr", {}, ...values.map((value) => el(name, {}, String(value))));
    const body = cells.map((values) => row("td", values));
    against.replaceChildren(
      el("h3", {}, "Against transformers"),
      el("table", { class: "sv-table" }, row("th", heading), ...body),
    );
  }

  return { show };
}
