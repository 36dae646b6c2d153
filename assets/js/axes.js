// The still part of a panel: grid, ticks, titles with their units, and a reference line. Built anew
// when a range or the size changes, never for a new value.

import { ticks } from "./scale.js";
import { svg } from "./svg.js";

export function drawAxes(group, panel, view, area, toX, toY) {
  const { left, right, top, bottom, em } = area;
  const room = (panel.bars ? 2 : 4.5) * em; // for one tick
  const xTicks = ticks(view.x, (right - left) / room, { whole: panel.xWhole });
  const yTicks = ticks(view.y, Math.min((bottom - top) / (2.4 * em), 5), { whole: panel.yWhole });
  const middle = (left + right) / 2;
  group.replaceChildren(
    svg("path", { class: "sv-chart-grid", d: lines(panel.bars ? [] : yTicks, left, right, toY) }),
    svg("path", { class: "sv-chart-base", d: "M" + left + " " + bottom + "H" + right }),
    ...xTicks.map(({ value, text }) => label(text, toX(value), bottom + 1.25 * em, "middle")),
    ...yTicks.map(({ value, text }) => label(text, left - 0.5 * em, toY(value) + 0.35 * em, "end")),
    label(panel.xTitle, middle, bottom + 2.6 * em, "middle"),
    upright(panel.yTitle, 1.1 * em, (top + bottom) / 2),
    ...(panel.rule ? rule(panel.rule, area, toY) : []),
  );
}

function lines(yTicks, left, right, toY) {
  return yTicks
    .map(({ value }) => "M" + left + " " + toY(value).toFixed(1) + "H" + right)
    .join("");
}

// The label stands under its line or, where the axis is too near, over it.
function rule({ value, label: text }, { left, right, bottom, em }, toY) {
  const y = toY(value);
  const labelY = y + 1.5 * em < bottom ? y + 1.1 * em : y - 0.4 * em;
  return [
    svg("path", { class: "sv-chart-rule", d: "M" + left + " " + y.toFixed(1) + "H" + right }),
    label(text, right, labelY, "end"),
  ];
}

function label(text, x, y, anchor) {
  return svg("text", { x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor }, text);
}

function upright(text, x, y) {
  const turned = label(text, 0, 0, "middle");
  turned.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(-90)`);
  return turned;
}
