// A chart as plotly takes it: traces, axes, ranges and colours.

export const MARGIN = { l: 32, r: 84, t: 10, b: 40 };
const PANEL_GAP = 0.24;

// The share of the plot's height that a panel takes, from below: [low, high].
export function panelDomain(chart, panel) {
  const height = (1 - PANEL_GAP * (chart.panels.length - 1)) / chart.panels.length;
  const top = 1 - panel * (height + PANEL_GAP);
  return [Math.max(0, top - height), top];
}

const axisName = (letter, panel) => letter + (panel === 0 ? "" : panel + 1);

// Two traces a line: the line itself, and its last point with the label beside it.
export function traces(chart, series, ranges, theme) {
  return chart.lines.flatMap((line, i) => {
    const axes = { xaxis: axisName("x", line.panel), yaxis: axisName("y", line.panel) };
    const colour = theme[line.colour];
    if (line.bars) {
      return [
        {
          ...series[i],
          ...axes,
          type: "bar",
          marker: { color: colour },
          width: 0.72,
          text: series[i].y.map(String),
          textposition: "outside",
          cliponaxis: false,
          textfont: { size: 12, color: theme.ink },
          hovertemplate: "%{y} rounds accepted %{x}<extra></extra>",
        },
      ];
    }
    return [
      {
        ...series[i],
        ...axes,
        type: "scatter",
        mode: "lines",
        name: line.label,
        line: { color: colour, width: 2.5, dash: line.dash ?? "solid" },
        hovertemplate: "%{y:.2f} at %{x:.4~g}<extra></extra>",
      },
      {
        ...endOf(chart, i, series, ranges),
        ...axes,
        type: "scatter",
        mode: "markers+text",
        hoverinfo: "skip",
        marker: { color: colour, size: 7 },
        cliponaxis: false,
        textfont: { size: 12, color: theme.ink },
      },
    ];
  });
}

// The last point of line i, its label, and the side on which the label is in nobody's way.
function endOf(chart, i, series, ranges) {
  const line = chart.lines[i];
  const { x, y } = series[i];
  if (y.length === 0) return { x: [], y: [], text: [], textposition: "middle right" };
  const label = line.lane ? line.label : (line.label + " " + line.format(y.at(-1))).trim();
  const textposition = line.lane
    ? raceSide(chart, i, series, ranges[line.panel].x[1])
    : "middle right";
  return { x: [x.at(-1)], y: [y.at(-1)], text: ["\u2002" + label + "\u2002"], textposition };
}

// Of the two lanes the steeper line is labelled above it, the other below.
function raceSide(chart, i, series, limit) {
  const slope = ({ x, y }) => (x.length > 1 ? y.at(-1) / x.at(-1) : 0);
  const other = chart.lines.findIndex((line, j) => line.lane && j !== i);
  const ahead = slope(series[i]) >= slope(series[other]);
  if (!ahead) return "bottom right";
  return series[i].x.at(-1) > 0.36 * limit ? "middle left" : "top right";
}

export function restyled(chart, series, ranges) {
  const data = { x: [], y: [], text: [], textposition: [] };
  chart.lines.forEach((line, i) => {
    data.x.push(series[i].x);
    data.y.push(series[i].y);
    data.text.push(line.bars ? series[i].y.map(String) : undefined);
    data.textposition.push(line.bars ? "outside" : undefined);
    if (line.bars) return;
    const end = endOf(chart, i, series, ranges);
    for (const name of Object.keys(data)) data[name].push(end[name]);
  });
  return { data, indices: data.x.map((_, i) => i) };
}

export function rangeUpdate(chart, ranges) {
  const update = {};
  chart.panels.forEach((panel, i) => {
    update[axisKey("xaxis", i) + ".range"] = ranges[i].x;
    if (ranges[i].y) update[axisKey("yaxis", i) + ".range"] = ranges[i].y;
  });
  return update;
}

const axisKey = (name, panel) => name + (panel === 0 ? "" : panel + 1);

export function layout(chart, ranges, theme) {
  const font = { family: theme.font, size: 12, color: theme.muted };
  const result = {
    font,
    showlegend: false,
    hovermode: "closest",
    dragmode: false,
    shapes: [],
    annotations: [],
    margin: MARGIN,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: { font: { family: theme.font, size: 12 } },
    separators: ". ",
  };
  chart.panels.forEach((panel, i) => {
    const shared = { fixedrange: true, zeroline: false, automargin: false, tickfont: { size: 12 } };
    result[axisKey("xaxis", i)] = {
      ...shared,
      anchor: axisName("y", i),
      range: ranges[i].x,
      showgrid: false,
      nticks: 6,
      title: { text: panel.xTitle, standoff: 6, font: { size: 12 } },
      ...(panel.bars ? { dtick: 1 } : {}),
    };
    result[axisKey("yaxis", i)] = {
      ...shared,
      anchor: axisName("x", i),
      domain: panelDomain(chart, i),
      rangemode: "tozero",
      range: ranges[i].y ?? panel.y,
      gridcolor: theme.line,
      nticks: 4,
      showgrid: !panel.bars,
      ...(panel.bars ? { showticklabels: false } : {}),
    };
    if (!panel.rule) return;
    result.shapes.push(rule(panel.rule, i, theme));
    result.annotations.push(ruleLabel(panel, i, theme));
  });
  return result;
}

function rule(value, panel, theme) {
  return {
    type: "line",
    xref: axisName("x", panel) + " domain",
    yref: axisName("y", panel),
    layer: "below",
    x0: 0,
    x1: 1,
    y0: value,
    y1: value,
    line: { color: theme.edge, width: 1.5, dash: "dot" },
  };
}

function ruleLabel(panel, i, theme) {
  return {
    text: panel.ruleLabel,
    showarrow: false,
    xref: axisName("x", i) + " domain",
    yref: axisName("y", i),
    x: 0,
    y: panel.rule,
    xanchor: "left",
    yanchor: "top",
    xshift: 2,
    font: { size: 12, color: theme.muted },
  };
}
