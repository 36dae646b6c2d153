// The table of a sweep: a row a setup, every metric with its definition, sorted by any column.

import { el, setAttr } from "./dom.js";
import { DASH, rate, share, times } from "./format.js";

const interval = ({ speedup_low: low, speedup_high: high }) =>
  typeof low === "number" ? low.toFixed(2) + "\u2013" + high.toFixed(2) : DASH;
const sameText = (row) => (row.compared ? row.same_text + "/" + row.compared : DASH);

// Columns by the row's own name of the figure; its definition is shown on the heading.
const figure = (title, key, format) => ({
  title,
  key,
  value: (row) => row[key],
  text: (row) => format(row[key]),
});
const spread = (title, part, why) => ({
  title,
  why,
  value: (row) => row.spread.speedup?.[part],
  text: (row) => share(row.spread.speedup?.[part]),
});

const COLUMNS = [
  { title: "Guesses from", value: (row) => row.name, text: (row) => row.name, words: true },
  figure("Gamma", "gamma", String),
  figure("Speedup", "speedup", times),
  {
    title: "95 %",
    why: "Bootstrap interval of the speedup: whole prompts are drawn again. It needs two prompts.",
    value: (row) => row.speedup_low,
    text: interval,
  },
  spread("Mean", "mean", "Mean of the speedups run by run."),
  spread("Median", "median", "Median of the speedups run by run."),
  spread("SD", "deviation", "Standard deviation of the speedups run by run."),
  figure("End to end", "end_to_end_speedup", times),
  figure("TAR", "tar", share),
  figure("Alpha", "alpha", share),
  figure("Tokens a call", "tokens_per_target_call", share),
  figure("Tokens/s", "tokens_per_s", rate),
  figure("Alone, tokens/s", "baseline_tokens_per_s", rate),
  figure("c", "cost_ratio", share),
  figure("v", "verify_ratio", share),
  figure("Predicted", "predicted_speedup", times),
  figure("Efficiency", "efficiency", share),
  figure("Runs", "runs", String),
  {
    title: "Same text",
    why: "Greedy runs that wrote exactly what the target alone wrote.",
    value: (row) => row.same_text,
    text: sameText,
  },
];

export function createTable(root, definitions) {
  const head = el("tr", {}, ...COLUMNS.map(heading));
  const body = el("tbody", {});
  const caption = el("caption", {}, "Every setup, over all its runs");
  const table = el("table", { class: "sv-table" }, caption, el("thead", {}, head), body);
  const scroll = { class: "sv-table-scroll", tabindex: 0, role: "region" };
  root.append(el("div", { ...scroll, "aria-label": "Table of all setups" }, table));
  let rows = [];
  let sorted = { column: null, down: true };

  function heading(column) {
    const title = definitions[column.key] ?? column.why;
    const onclick = () => sortBy(column);
    const button = el("button", { type: "button", title, onclick }, column.title);
    return el("th", { scope: "col" }, button);
  }

  function sortBy(column) {
    sorted = { column, down: sorted.column === column ? !sorted.down : !column.words };
    render();
  }

  function render() {
    COLUMNS.forEach((column, i) => {
      const order = sorted.down ? "descending" : "ascending";
      setAttr(head.children[i], "aria-sort", column === sorted.column ? order : null);
    });
    const best = Math.max(...rows.map((row) => row.speedup ?? 0));
    body.replaceChildren(...inOrder().map((row) => line(row, row.speedup === best)));
  }

  function inOrder() {
    if (!sorted.column) return rows;
    const { column, down } = sorted;
    const sign = down ? -1 : 1;
    return [...rows].sort((a, b) => sign * compared(column.value(a), column.value(b)));
  }

  function line(row, best) {
    const [name, ...figures] = COLUMNS.map((column) => column.text(row));
    const cells = figures.map((text) => el("td", {}, text));
    return el("tr", { class: best ? "sv-best" : "" }, el("th", { scope: "row" }, name), ...cells);
  }

  return {
    show(next) {
      rows = next;
      render();
    },
  };
}

// What was not measured comes before every number.
function compared(a, b) {
  if (typeof a === "string" && typeof b === "string") return a.localeCompare(b);
  return (a ?? -Infinity) - (b ?? -Infinity);
}
