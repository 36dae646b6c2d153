// One panel of a chart: axes, lines or bars, a legend with the latest values, and rings around the
// points of a round. What does not change is not touched: a new value costs one path and one text.

import { drawAxes } from "./axes.js";
import { setAttr, setText } from "./dom.js";
import { areaPath, barsPath, linePath } from "./path.js";
import { linear } from "./scale.js";
import { MARKS, moved, svg } from "./svg.js";

const BAR = 0.72; // of the room one bar has

export function createPanel(panel) {
  const axes = svg("g", {});
  const plotted = svg("svg", { class: "sv-chart-plotted" }); // a viewport of its own: it clips
  const paths = panel.lines.map((line) => svg("path", { class: lineClass(panel, line) }));
  const ends = panel.lines.map((line) => svg("path", { class: "sv-chart-end " + hue(line) }));
  const legend = panel.lines.map((line) => legendEntry(panel, line));
  const counts = svg("g", { class: "sv-chart-counts", "text-anchor": "middle" });
  const beyond = svg("text", { "text-anchor": "end" });
  const marks = svg("g", {});
  const cross = svg("path", { class: "sv-chart-cross" });
  const element = svg("g", {}, axes, plotted, cross, ...ends, counts, beyond, marks);
  plotted.append(...paths);
  element.append(...legend.map((entry) => entry.element));
  panel.lines.forEach((line, i) => setAttr(ends[i], "d", MARKS[line.mark]));
  let area = null;
  let toX = null;
  let toY = null;
  let framed = "";

  // `view` is {series, values, x, y}: the numbers, the latest of each as text, the axes' ranges.
  function draw(view, newArea) {
    const frame = [newArea.key, view.x, view.y].join();
    if (frame !== framed) {
      framed = frame;
      area = newArea;
      layOut(view);
    }
    view.series.forEach((series, i) => {
      if (panel.bars) drawBars(series);
      else drawLine(series, i, view.y[1]);
      setText(legend[i].value, view.values[i]);
    });
    if (!panel.bars) tellBeyond(view);
  }

  function layOut(view) {
    toX = linear(view.x, [area.left, area.right]);
    toY = linear(view.y, [area.bottom, area.top]);
    const { left, top, right, bottom, em } = area;
    const box = { x: left, y: top, width: right - left, height: bottom - top };
    for (const [name, value] of Object.entries(box)) setAttr(plotted, name, value);
    setAttr(plotted, "viewBox", Object.values(box).join(" "));
    drawAxes(axes, panel, view, area, toX, toY);
    const slot = (right - left) / panel.lines.length;
    legend.forEach((entry, i) => entry.place(left + i * slot, top - 0.9 * em, em));
    setAttr(beyond, "x", right);
    setAttr(beyond, "y", (top - 0.55 * em).toFixed(1));
  }

  function drawLine(series, i, highest) {
    setAttr(paths[i], "d", (panel.lines[i].area ? areaPath : linePath)(series, toX, toY));
    const last = series.xs.length - 1;
    const inside = last >= 0 && series.ys[last] <= highest;
    setAttr(ends[i], "visibility", inside ? "visible" : "hidden");
    if (inside) setAttr(ends[i], "transform", moved(toX(series.xs[last]), toY(series.ys[last])));
  }

  function drawBars(series) {
    setAttr(paths[0], "d", barsPath(series, toX, toY, BAR));
    setAttr(ends[0], "visibility", "hidden");
    while (counts.children.length > series.xs.length) counts.lastChild.remove();
    while (counts.children.length < series.xs.length) counts.append(svg("text", {}));
    series.ys.forEach((value, i) => {
      const text = counts.children[i];
      setText(text, String(value));
      setAttr(text, "x", toX(series.xs[i]).toFixed(1));
      setAttr(text, "y", (toY(value) - 0.35 * area.em).toFixed(1));
    });
  }

  // The first few calls can give ratios far above the rest. The axis leaves them out, and says so.
  function tellBeyond({ series, y }) {
    const highest = Math.max(0, ...series.map(({ ys }) => ys.reduce((a, b) => Math.max(a, b), 0)));
    setText(beyond, highest > y[1] ? "first calls up to " + highest.toFixed(2) : "");
  }

  function mark(points) {
    marks.replaceChildren(...(toX ? points.map(ring) : []));
  }

  function ring(point) {
    if (point.bar === undefined) {
      const place = moved(toX(point.x), toY(point.y));
      return svg("circle", { class: "sv-mark", r: 6.5, transform: place });
    }
    const left = toX(point.bar - BAR / 2) - 2;
    const top = toY(point.count) - 2;
    const width = toX(point.bar + BAR / 2) + 2 - left;
    const size = { x: left, y: top, width, height: area.bottom - top + 1 };
    return svg("rect", { class: "sv-mark", ...size });
  }

  // A line down the panel at the stop that is being read, or none.
  function point(stop) {
    const x = stop ? toX(stop.x).toFixed(1) : 0;
    setAttr(cross, "d", stop ? "M" + x + " " + area.top + "V" + area.bottom : "");
  }

  // Where a stop of this panel stands, in pixels of the chart.
  function place(stop) {
    return { x: toX(stop.x), y: stop.y === null ? area.top + 1.5 * area.em : toY(stop.y) };
  }

  return { element, draw, mark, point, place, area: () => area };
}

const hue = (line) => "sv-hue-" + line.colour;

function lineClass(panel, line) {
  if (panel.bars) return "sv-chart-bars " + hue(line);
  if (line.area) return "sv-chart-area " + hue(line);
  return "sv-chart-series " + hue(line) + (line.dash ? " sv-chart-dashed" : "");
}

// A sample of the line, its name and its latest value.
function legendEntry(panel, line) {
  const sample = svg("path", { class: lineClass(panel, line) });
  const end = svg("path", { class: "sv-chart-end " + hue(line), d: MARKS[line.mark] });
  const value = svg("tspan", { class: "sv-chart-value" });
  const text = svg("text", {}, line.label + " ", value);
  const element = svg("g", { class: "sv-chart-legend-row" }, sample, end, text);
  function place(x, y, em) {
    const length = panel.bars ? 0 : 2 * em;
    setAttr(element, "transform", moved(x, y));
    setAttr(sample, "d", panel.bars ? "" : "M0 0H" + length);
    setAttr(end, "transform", moved(panel.bars ? 4 : length / 2, 0));
    setAttr(text, "x", length + (panel.bars ? 1.1 : 0.5) * em);
    setAttr(text, "y", (0.35 * em).toFixed(1));
  }
  return { element, value, place };
}
