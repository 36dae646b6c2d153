// The live plots, drawn by plotly. One plot is updated at a time, ten a second at most, and less
// often on a machine where an update is slow, so that watching never costs much.

import { CHARTS } from "./charts.js";
import { setText } from "./dom.js";
import { layout, rangeUpdate, restyled, traces } from "./layout.js";
import { createMarks } from "./marks.js";
import { leadLane, tellingKey } from "./model.js";
import { readTheme } from "./theme.js";

const FASTEST_MS = 100;
const DUTY = 10; // rest this many times as long as an update took
const CONFIG = { displayModeBar: false, responsive: false, doubleClick: false };

export function createPlots(root, { model, playhead, selection }) {
  const plots = [...root.querySelectorAll(".sv-plot")].map((figure) => ({
    chart: CHARTS[figure.dataset.plot],
    box: figure.querySelector(".sv-plot-box"),
    words: figure.querySelector("p"),
    drawn: null, // the state it shows
    ready: false,
    seen: false,
    ranges: null, // of its axes, a panel each
  }));
  const marks = createMarks(plots);
  let marked = null;
  const costs = { updates: 0, last: 0, worst: 0, total: 0 };
  let theme = readTheme(root);
  let timer = 0;
  let turn = 0;
  let nextAt = 0;
  let complete = false;

  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) plotOf(entry.target).seen = entry.isIntersecting;
      schedule();
    },
    { rootMargin: "200px" },
  );
  const sizes = new ResizeObserver((entries) => {
    for (const entry of entries) resize(plotOf(entry.target));
  });
  for (const plot of plots) {
    watcher.observe(plot.box);
    sizes.observe(plot.box);
  }

  const plotOf = (box) => plots.find((plot) => plot.box === box);

  function resize(plot) {
    if (plot.ready && plot.box.clientWidth > 0) window.specvizPlotly.Plots.resize(plot.box);
  }

  function positions() {
    const full = (name) => (model.lanes[name] ? playhead.position(model.lanes[name]).full : 0);
    const lead = leadLane(model);
    return {
      time: playhead.time,
      speculative: full("speculative"),
      baseline: full("baseline"),
      lead: lead ? playhead.position(lead).full : 0,
    };
  }

  function stateNow() {
    const at = positions();
    return [model.start !== null, at.speculative, at.baseline, complete].join();
  }

  function render(frame) {
    complete = frame.complete;
    if (plots.some((plot) => plot.seen && plot.drawn !== stateNow())) schedule();
  }

  function schedule() {
    if (!timer) timer = setTimeout(update, Math.max(0, nextAt - performance.now()));
  }

  function update() {
    timer = 0;
    const state = stateNow();
    const waiting = plots.filter((plot) => plot.seen && plot.drawn !== state);
    if (waiting.length === 0) return;
    const plot = waiting[turn % waiting.length];
    turn += 1;
    const begin = performance.now();
    draw(plot);
    plot.drawn = state;
    note(performance.now() - begin);
    if (waiting.length > 1) schedule();
  }

  function note(cost) {
    costs.updates += 1;
    costs.last = cost;
    costs.total += cost;
    costs.worst = Math.max(costs.worst, cost);
    nextAt = performance.now() + Math.max(FASTEST_MS - cost, cost * DUTY);
  }

  function draw(plot) {
    const Plotly = window.specvizPlotly;
    if (!Plotly) {
      setText(plot.box, "This plot needs plotly.js, which did not load.");
      plot.box.classList.add("sv-plot-missing");
      return;
    }
    const { chart, box } = plot;
    const series = leadLane(model)
      ? chart.series(model, positions())
      : chart.lines.map(() => ({ x: [], y: [] }));
    const ranges = chart.ranges(model, series, complete);
    plot.ranges = ranges;
    if (plot.ready) {
      const { data, indices } = restyled(chart, series, ranges);
      Plotly.update(box, data, rangeUpdate(chart, ranges), indices);
    } else {
      Plotly.newPlot(
        box,
        traces(chart, series, ranges, theme),
        layout(chart, ranges, theme),
        CONFIG,
      );
      plot.ready = true;
      pointOut(plot);
    }
    setText(plot.words, chart.sentence(series));
    if (marked) marks.show(model, marked);
  }

  // A point of the plot is a round: hovering it looks at that round's telling token.
  function pointOut(plot) {
    plot.box.on("plotly_hover", ({ points }) => {
      const round = plot.chart.roundOf(model, points[0]);
      selection.hover(round ? tellingKey(round) : null);
    });
    plot.box.on("plotly_unhover", () => selection.hover(null));
  }

  function mark(round) {
    if (round === marked) return;
    marked = round;
    marks.show(model, round);
  }

  return {
    render,
    mark,
    costs,
    reset() {
      mark(null);
      for (const plot of plots) plot.drawn = null;
    },
    retheme() {
      theme = readTheme(root);
      for (const plot of plots) Object.assign(plot, { drawn: null, ready: false });
    },
  };
}
