// A plotly figure on the page: in the page's colours, as wide as its place, saved as PNG or SVG
// without any network. The figure brings data, axes and captions; ink and grid come from here.

import { el, setText } from "./dom.js";
import { wrapped } from "./lines.js";
import { loadPlotly } from "./plotly.js";
import { readTheme, watchTheme } from "./theme.js";

const CONFIG = { displayModeBar: false, responsive: false, doubleClick: false, scrollZoom: false };
const NARROW = 560;
const LEGEND_LINE = 20; // on a narrow figure each name takes a line of its own
const SAVED = { width: 960, height: 600, scale: 2 };
const CAPTION = { letters: 130, size: 14, line: 18 }; // under the title of a saved figure
const TITLE_LINE = 76;
const LEGEND_ROW = { names: 2, height: 24 };
const CORNER = { x: 0.02, xanchor: "left", y: 0.97, yanchor: "top", yref: "container" };
const MISSING = "This plot needs plotly.js, which did not load.";

export function createFigure(host, url) {
  const title = el("h3", { class: "sv-figure-title" });
  const box = el("div", { class: "sv-figure-box" });
  const caption = el("p", { class: "sv-figure-caption" });
  const head = el("figcaption", { class: "sv-figure-head" }, title, ...saveButtons());
  box.setAttribute("role", "img");
  const root = el("figure", { class: "sv-figure" }, head, box, caption);
  host.append(root);
  let figure = null;
  let width = 0;

  new ResizeObserver(() => {
    if (Math.abs(box.clientWidth - width) > 1) draw();
  }).observe(box);
  watchTheme(() => draw());

  function saveButtons() {
    const plain = { type: "button", class: "sv-figure-save" };
    return ["PNG", "SVG"].map((format) =>
      el("button", { ...plain, onclick: () => save(format) }, format),
    );
  }

  function show(next) {
    figure = next;
    const meta = figure.layout.meta;
    setText(title, meta.title);
    setText(caption, meta.caption);
    box.setAttribute("aria-label", meta.title + ". " + meta.caption);
    for (const button of root.querySelectorAll(".sv-figure-save"))
      button.setAttribute("aria-label", "Save as " + button.textContent + ": " + meta.title);
    draw();
  }

  async function draw() {
    width = box.clientWidth;
    if (!figure || width === 0) return;
    try {
      const Plotly = await loadPlotly(url);
      await Plotly.react(box, figure.data, dressed(figure, readTheme(root), width), CONFIG);
    } catch {
      setText(box, MISSING);
    }
  }

  async function save(format) {
    if (!figure) return;
    const Plotly = await loadPlotly(url);
    const layout = framed(figure, readTheme(root));
    const name = "specviz-" + figure.layout.meta.name;
    const image = { format: format.toLowerCase(), filename: name, ...SAVED };
    await Plotly.downloadImage({ data: figure.data, layout }, image);
  }

  return { root, show };
}

// The layout for a file of its own, in which title and caption are part of the picture.
function framed(figure, theme) {
  const { title, caption } = figure.layout.meta;
  const lines = wrapped(caption, CAPTION.letters);
  const font = { size: CAPTION.size, color: theme.muted };
  const top = TITLE_LINE + CAPTION.line * lines.length + legendHeight(figure);
  return {
    ...dressed(figure, theme, SAVED.width),
    ...SAVED,
    paper_bgcolor: theme.surface,
    title: { text: title, ...CORNER, subtitle: { text: lines.join("<br>"), font } },
    margin: { l: 24, r: 48, t: top, b: 24 },
  };
}

const namesIn = (data) =>
  data.filter((trace) => trace.name && trace.showlegend !== false).length;

function legendHeight({ data, layout }) {
  if (!layout.showlegend) return 0;
  return LEGEND_ROW.height * Math.ceil(namesIn(data) / LEGEND_ROW.names);
}

// A layout with the ink of the theme, and smaller letters where there is little room.
function dressed({ layout, data }, theme, width) {
  const narrow = width < NARROW;
  const size = narrow ? 12 : 14;
  const names = namesIn(data);
  const font = { ...layout.font, family: theme.font, color: theme.ink, size };
  const label = { bgcolor: theme.surface, bordercolor: theme.edge };
  const result = {
    ...layout,
    width,
    height: layout.height + (narrow && layout.showlegend ? LEGEND_LINE * names : 0),
    font,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: { ...label, font: { family: theme.font, color: theme.ink, size } },
    legend: { ...layout.legend, font: { size } },
  };
  for (const [name, axis] of Object.entries(layout)) {
    if (/^[xy]axis\d*$/.test(name)) result[name] = dressedAxis(axis, theme, size);
  }
  return result;
}

function dressedAxis(axis, theme, size) {
  const title = typeof axis.title === "string" ? { text: axis.title } : axis.title;
  return {
    ...axis,
    fixedrange: true,
    gridcolor: theme.line,
    linecolor: theme.edge,
    zerolinecolor: theme.edge,
    tickcolor: theme.edge,
    tickfont: { size, color: theme.ink },
    title: title && { ...title, font: { size, color: theme.muted } },
  };
}
