// The plots of the stage: drawn with the stage's own frames, only when what they show has changed
// and, while anything moves, only those that can be seen.

import { createChart } from "./chart.js";
import { CHARTS } from "./charts.js";
import { el, setAttr, setHidden, setText, uniqueId } from "./dom.js";
import { leadLane } from "./model.js";
import { createReading } from "./reading.js";
import { saveButtons, standalone } from "./save.js";
import { createPeaks } from "./series.js";

export function createPlots(root, context) {
  const { model, playhead, selection, actions } = context;
  const peaks = createPeaks(model);
  const plots = [...root.querySelectorAll(".sv-plot")].map(createPlot);
  let marked = null;
  let complete = false;

  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) plotOf(target).seen = isIntersecting;
      actions.refresh();
    },
    { rootMargin: "100px" },
  );
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) Object.assign(plotOf(target), { measured: false, drawn: "" });
    actions.refresh();
  });
  for (const { box } of plots) {
    watcher.observe(box);
    sizes.observe(box);
  }
  const plotOf = (box) => plots.find((plot) => plot.box === box);

  function createPlot(element) {
    const name = element.dataset.plot;
    const figure = CHARTS[name];
    const box = element.querySelector(".sv-plot-box");
    const caption = element.querySelector("figcaption");
    const title = caption.textContent;
    element.append(el("p", { class: "sv-plot-note" }, figure.note));
    const words = element.querySelector("p");
    words.id = uniqueId("plot");
    const spoken = { tabindex: 0, role: "group", "aria-roledescription": "chart" };
    const attributes = { ...spoken, "aria-label": title, "aria-describedby": words.id };
    for (const [key, value] of Object.entries(attributes)) setAttr(box, key, value);
    const chart = createChart(box, figure);
    caption.append(saveButtons(() => standalone(chart.root, title, figure.note), title, "specviz-" + name));
    createReading(box, chart, {
      stopsOf: (panel) => figure.panels[panel].stops(model, positions()),
      words: (panel, stop) => figure.panels[panel].words(stop),
      selection,
    });
    return { element, figure, box, words, chart, seen: false, measured: false, drawn: "" };
  }

  function positions() {
    const full = (lane) => (lane ? playhead.position(lane).full : 0);
    const { speculative, baseline } = model.lanes;
    const lead = full(leadLane(model));
    return { time: playhead.time, speculative: full(speculative), baseline: full(baseline), lead };
  }

  function render(frame) {
    complete = frame.complete;
    const at = positions();
    const state = [model.start !== null, model.ordered.length, complete, Object.values(at)].join();
    const known = peaks.update();
    for (const plot of plots) {
      setHidden(plot.element, !(plot.figure.isNeeded?.(model, known) ?? true));
      if ((plot.seen || frame.resting) && plot.drawn !== state) draw(plot, at, state);
    }
  }

  function draw(plot, at, state) {
    plot.measured = plot.measured || plot.chart.measure();
    if (!plot.measured) return;
    plot.drawn = state;
    const views = plot.figure.panels.map((panel) => viewOf(panel, at));
    plot.chart.draw(views);
    setText(plot.words, plot.figure.sentence(views.map((view) => view.series)));
    if (marked) markPlot(plot);
  }

  function viewOf(panel, at) {
    const series = panel.series(model, at);
    const known = peaks.update();
    const x = panel.xRange(model, known, complete);
    const y = panel.yRange(model, known, complete);
    return { series, values: panel.values(series), x, y };
  }

  // Rings around the round that is being looked at.
  function mark(round) {
    if (round === marked) return;
    marked = round;
    for (const plot of plots) if (plot.chart.ready()) markPlot(plot);
  }

  function markPlot({ figure, chart }) {
    figure.panels.forEach((panel, i) =>
      chart.panels[i].mark(marked ? panel.points(model, marked) : []),
    );
  }

  return {
    render,
    mark,
    reset() {
      mark(null);
      for (const plot of plots) plot.drawn = "";
    },
    retheme() {
      for (const plot of plots) Object.assign(plot, { measured: false, drawn: "" });
    },
  };
}
