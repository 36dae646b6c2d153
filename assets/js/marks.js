// Rings on the plots around the points, and the bar, of the round that is being looked at. Plain
// elements laid over the plot: a redraw by plotly would cost a frame at every hover.

import { el } from "./dom.js";
import { MARGIN, panelDomain } from "./layout.js";

export function createMarks(plots) {
  const layers = new Map(plots.map((plot) => [plot, []]));

  // `round` is the round to mark, or null for none.
  function show(model, round) {
    for (const plot of plots) {
      for (const mark of layers.get(plot)) mark.remove();
      layers.set(plot, round && plot.ready && plot.ranges ? draw(plot, model, round) : []);
    }
  }

  return { show };
}

function draw(plot, model, round) {
  return plot.chart.points(model, round).flatMap((point) => {
    const area = areaOf(plot, point.panel);
    const mark = point.bar === undefined ? ring(area, point) : outline(area, point);
    if (mark) plot.box.after(mark);
    return mark ? [mark] : [];
  });
}

// Where a panel lies in the figure, in pixels, and what its axes show.
function areaOf(plot, panel) {
  const { box, chart, ranges } = plot;
  const [low, high] = panelDomain(chart, panel);
  const height = box.clientHeight - MARGIN.t - MARGIN.b;
  const range = ranges[panel];
  const yRange = range.y ?? chart.panels[panel].y;
  const left = box.offsetLeft + MARGIN.l;
  const width = box.clientWidth - MARGIN.l - MARGIN.r;
  const top = box.offsetTop + MARGIN.t + (1 - high) * height;
  const inside = (value, [from, to]) => (value - from) / (to - from);
  return {
    x: (value) => left + inside(value, range.x) * width,
    y: (value) => top + (1 - inside(value, yRange)) * (high - low) * height,
  };
}

function ring(area, { x, y }) {
  if (typeof x !== "number" || typeof y !== "number") return null;
  const mark = el("span", { class: "sv-mark sv-mark-point" });
  mark.style.translate = area.x(x) + "px " + area.y(y) + "px";
  return mark;
}

function outline(area, { bar, count }) {
  const mark = el("span", { class: "sv-mark" });
  const left = area.x(bar - 0.4);
  const top = area.y(count) - 3;
  mark.style.translate = left + "px " + top + "px";
  mark.style.width = area.x(bar + 0.4) - left + "px";
  mark.style.height = area.y(0) - top + 2 + "px";
  return mark;
}
