// The four figures of the Theory tab as plotly takes them: curves from the sliders' values, the
// measured run with its intervals, and published results. Colours are legible on light and dark.

import { bestGamma, expectedTokens, speedup } from "./theorymath.js";

const ALPHAS = Array.from({ length: 101 }, (_, i) => i / 100);
const GAMMAS = Array.from({ length: 17 }, (_, i) => i);
const SHOWN_GAMMAS = [1, 2, 4, 8];
const SHOWN_COSTS = { 0.02: 8, 0.1: 6, 0.3: 4 }; // c, and the gamma at which its name stands
const SHOWN_BEST = 12;
const ACCENT = "#009e73";
const PAPER = "#0072b2";
const MEASURED = "#d55e00";
const GREY = "#80868e";
const REFERENCE = "#cc79a7";

const curve = (x, y, name, line, rest = {}) => ({
  x,
  y,
  name,
  mode: "lines",
  line: { width: 3, ...line },
  hovertemplate: "%{y:.2f} at %{x}<extra>%{fullData.name}</extra>",
  ...rest,
});

// A thin curve with its name at one of its points, the last unless told otherwise.
const named = (x, y, name, text, line = {}, place = x.length - 1) => ({
  ...curve(x, y, name, { width: 1.5, color: GREY, ...line }),
  mode: "lines+text",
  text: x.map((_, i) => (i === place ? text : "")),
  textposition: "top left",
  showlegend: false,
  cliponaxis: false,
});

const marker = (x, y, name, color, symbol, rest = {}) => ({
  x: [x],
  y: [y],
  name,
  mode: "markers",
  marker: { color, symbol, size: 13, line: { width: 1.5, color: "#ffffff" } },
  hovertemplate: "%{y:.2f} at %{x:.3~g}<extra>%{fullData.name}</extra>",
  ...rest,
});

const bars = (value, interval) =>
  interval && {
    type: "data",
    symmetric: false,
    array: [interval[1] - value],
    arrayminus: [value - interval[0]],
    color: MEASURED,
    thickness: 2,
  };

// The measured run at (x, y), where it is known.
function measured(point, x, y, xInterval, yInterval) {
  if (!point) return [];
  const errors = { error_x: bars(x, xInterval), error_y: bars(y, yInterval) };
  return [marker(x, y, "the run on Explore, measured", MEASURED, "diamond", errors)];
}

function layout(title, caption, xaxis, yaxis, rest = {}) {
  return {
    meta: { name: title.toLowerCase().replaceAll(" ", "-"), title, caption },
    height: 420,
    margin: { l: 8, r: 44, t: 16, b: 8 },
    hovermode: "closest",
    dragmode: false,
    showlegend: true,
    legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" },
    xaxis: { automargin: true, zeroline: false, ...xaxis },
    yaxis: { automargin: true, zeroline: false, rangemode: "tozero", ...yaxis },
    shapes: [],
    ...rest,
  };
}

const atOne = {
  type: "line",
  xref: "paper",
  x0: 0,
  x1: 1,
  y0: 1,
  y1: 1,
  layer: "below",
  line: { color: GREY, width: 2, dash: "dot" },
};
const ALPHA_AXIS = { title: "alpha: accepted / tested", range: [0, 1] };

export function tokensFigure({ alpha, gamma, point }) {
  const lines = SHOWN_GAMMAS.map((other) =>
    named(ALPHAS, ALPHAS.map((a) => expectedTokens(a, other)), "gamma " + other, String(other)),
  );
  const own = ALPHAS.map((a) => expectedTokens(a, gamma));
  return {
    data: [
      ...lines,
      curve(ALPHAS, own, "gamma " + gamma, { color: ACCENT }),
      marker(alpha, expectedTokens(alpha, gamma), "the sliders", ACCENT, "circle"),
      ...measured(point, point?.alpha, point?.tokens_per_round, point?.alpha_interval),
    ],
    layout: layout(
      "Tokens per round",
      "Expected tokens per target call, (1 - alpha^(gamma+1)) / (1 - alpha): equation 1 of" +
        " arXiv 2211.17192. Thin lines: other gammas, named at their right end.",
      ALPHA_AXIS,
      { title: "expected tokens per round", range: [0, Math.max(10, gamma + 2)] },
    ),
  };
}

export function gammaFigure({ alpha, gamma, c, slope, point }) {
  const extended = GAMMAS.map((g) => speedup(alpha, g, c, slope));
  const paper = GAMMAS.map((g) => speedup(alpha, g, c));
  const best = bestGamma(alpha, c, slope);
  return {
    data: [
      curve(GAMMAS, paper, "v = 1 (the paper)", { color: PAPER, dash: "dash" }),
      curve(GAMMAS, extended, "with v(n)", { color: ACCENT }),
      marker(gamma, speedup(alpha, gamma, c, slope), "the sliders", ACCENT, "circle"),
      ...(best < GAMMAS.length
        ? [marker(best, speedup(alpha, best, c, slope), "best gamma: " + best, ACCENT, "star")]
        : []),
      ...measured(point, point?.gamma, point?.speedup, null, point?.speedup_interval),
    ],
    layout: layout(
      "Speedup by draft length",
      "Expected speedup at the sliders' alpha and c: theorem 3.8 of arXiv 2211.17192 (dashed)," +
        " and extended by a verifying call that grows with its length (solid).",
      { title: "gamma: tokens drafted in a round", dtick: 2, range: [-0.3, 16.3] },
      { title: "expected speedup", ticksuffix: "x" },
      { shapes: [atOne] },
    ),
  };
}

export function alphaFigure({ alpha, gamma, c, slope, point, published }) {
  const known = published.filter((one) => one.alpha !== undefined);
  return {
    data: [
      curve(ALPHAS, ALPHAS.map((a) => speedup(a, gamma, c)), "v = 1 (the paper)", {
        color: PAPER,
        dash: "dash",
      }),
      curve(ALPHAS, ALPHAS.map((a) => speedup(a, gamma, c, slope)), "with v(n)", { color: ACCENT }),
      curve(ALPHAS, ALPHAS.map((a) => speedup(a, gamma, c / 2, slope)), "a draft twice as fast", {
        color: ACCENT,
        dash: "dot",
        width: 2,
      }),
      marker(alpha, speedup(alpha, gamma, c, slope), "the sliders", ACCENT, "circle"),
      {
        ...marker(0, 0, "T5-XXL 11B, measured in 2211.17192", REFERENCE, "x"),
        x: known.map((one) => one.alpha),
        y: known.map((one) => one.speedup),
        text: known.map((one) => [one.draft, one.task, "gamma " + one.gamma].join(", ")),
        hovertemplate: "%{text}<br>alpha %{x}, measured %{y}x<extra></extra>",
      },
      ...measured(
        point,
        point?.alpha,
        point?.speedup,
        point?.alpha_interval,
        point?.speedup_interval,
      ),
    ],
    layout: layout(
      "Speedup by acceptance",
      "Expected speedup at the sliders' gamma and c. Crosses are published measurements, each at" +
        " its own gamma and c (see the table), so they need not lie on these curves.",
      ALPHA_AXIS,
      { title: "speedup", ticksuffix: "x" },
      { shapes: [atOne] },
    ),
  };
}

export function bestFigure({ alpha, c, slope, point }) {
  const best = (cost) => ALPHAS.map((a) => bestGamma(a, cost, slope));
  const lines = Object.entries(SHOWN_COSTS).map(([cost, height]) => {
    const y = best(Number(cost)).filter((longest) => longest <= SHOWN_BEST);
    const place = y.findIndex((longest) => longest >= height);
    const name = "c = " + cost;
    return named(ALPHAS.slice(0, y.length), y, name, name + " ", { shape: "hv" }, place);
  });
  return {
    data: [
      ...lines,
      curve(ALPHAS, best(c), "c = " + c.toFixed(2), { color: ACCENT, shape: "hv" }),
      marker(alpha, bestGamma(alpha, c, slope), "the sliders", ACCENT, "circle"),
      ...measured(point, point?.alpha, point?.gamma, point?.alpha_interval),
    ],
    layout: layout(
      "Best draft length",
      "The gamma with the highest expected speedup, by alpha and c, with the sliders' v(n)." +
        " At 0 drafting never pays.",
      ALPHA_AXIS,
      { title: "best gamma", range: [-0.2, SHOWN_BEST + 1] },
    ),
  };
}
