// The Theory tab. The sliders move the curves at once, here in the browser; the last run of this
// page stands among them as it was measured.

import { el, setHidden, setText } from "./dom.js";
import { createFigure } from "./figure.js";
import { DASH, share, times } from "./format.js";
import { alphaFigure, bestFigure, gammaFigure, tokensFigure } from "./theorycurves.js";
import { bestGamma, breakEven, expectedTokens, speedup } from "./theorymath.js";

const FIGURES = [gammaFigure, alphaFigure, tokensFigure, bestFigure];
const SLIDERS = ["alpha", "gamma", "c", "slope"];

export function mountTheory(element, { published, plotly }) {
  const part = (name) => element.querySelector(".sv-theory-" + name);
  const figures = FIGURES.map(() => createFigure(part("figures"), plotly));
  const inputs = Object.fromEntries(SLIDERS.map((name) => [name, part(name)]));
  let point = null;
  let waiting = false;

  for (const name of SLIDERS) inputs[name].addEventListener("input", schedule);
  part("measured").addEventListener("click", useMeasured);
  showPublished(part("published"), published);
  render();

  const value = (name) => Number(inputs[name].value);

  function schedule() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      render();
    });
  }

  function render() {
    const set = Object.fromEntries(SLIDERS.map((name) => [name, Number(inputs[name].value)]));
    for (const name of SLIDERS) setText(part(name + "-value"), written(name, set[name]));
    FIGURES.forEach((figure, i) => figures[i].show(figure({ ...set, point, published })));
    showReadings(set);
  }

  // The sliders' own figures, and what would change them.
  function showReadings({ alpha, gamma, c, slope }) {
    const best = bestGamma(alpha, c, slope);
    const needed = breakEven(gamma, c, slope);
    const readings = {
      expected: times(speedup(alpha, gamma, c, slope)),
      tokens: share(expectedTokens(alpha, gamma)),
      best: best + " (" + times(speedup(alpha, best, c, slope)) + ")",
      even: needed === null ? DASH : share(needed),
      faster: times(speedup(alpha, gamma, c / 2, slope)),
      better: times(speedup(Math.min(1, alpha + 0.1), gamma, c, slope)),
      free: times(speedup(alpha, gamma, c, 0)),
    };
    for (const [name, text] of Object.entries(readings)) setText(part("reading-" + name), text);
  }

  function useMeasured() {
    for (const name of SLIDERS) inputs[name].value = point[name];
    schedule();
  }

  function show(text) {
    point = text ? JSON.parse(text) : null;
    setHidden(part("measured"), !point);
    setText(part("last"), point ? lastRun(point) : "No run with a baseline has been measured yet.");
    if (point) useMeasured();
    else schedule();
  }

  return { show };
}

function written(name, value) {
  return name === "gamma" ? String(value) : value.toFixed(name === "alpha" ? 2 : 3);
}

function lastRun({ alpha, gamma, c, v, speedup: measured, speedup_interval: interval }) {
  const between = interval ? " (95 % interval " + interval.map(share).join(" to ") + ")" : "";
  return (
    "The run on Explore: alpha " +
    [share(alpha), "gamma " + gamma, "c " + share(c), "v " + share(v)].join(", ") +
    "; measured " +
    times(measured) +
    between +
    "."
  );
}

function showPublished(table, published) {
  const row = (name, cells) => el("tr", {}, ...cells.map((cell) => el(name, {}, cell)));
  const heading = ["Target", "Draft", "Task", "Temperature", "Gamma", "c", "Alpha", "Formula"];
  const body = published.map((one) =>
    row("td", [
      one.target,
      one.draft,
      one.task,
      String(one.temperature ?? DASH),
      String(one.gamma ?? DASH),
      share(one.c),
      share(one.alpha),
      times(one.alpha === undefined ? null : speedup(one.alpha, one.gamma, one.c)),
      el("span", {}, times(one.speedup) + " ", el("a", { href: one.url }, one.source)),
    ]),
  );
  table.append(row("th", [...heading, "Measured there"]), ...body);
}
