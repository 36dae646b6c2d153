// Reading a chart: the pointer or the arrow keys go from stop to stop, a label tells the values
// there, and the round of the stop lights up everywhere else.

import { el, setAttr, setText } from "./dom.js";
import { tellingKey } from "./model.js";

const PAGE = 10;

// `stopsOf(panel index)` gives the stops of a panel now; `words(panel index, stop)` their text.
export function createReading(box, chart, { stopsOf, words, selection }) {
  const label = el("output", { class: "sv-readout" });
  label.hidden = true;
  box.append(label);
  let at = { panel: 0, stop: -1 };

  function show(panel, index, point) {
    const stop = stopsOf(panel)[index];
    if (!stop) return clear();
    at = { panel, stop: index };
    chart.panels.forEach((one, i) => one.point(i === panel ? stop : null));
    setText(label, words(panel, stop));
    label.hidden = false;
    place(chart.panels[panel].place(stop));
    point(stop.round ? tellingKey(stop.round) : null);
  }

  function place({ x, y }) {
    const onLeft = x > box.clientWidth / 2;
    label.style.translate = x + (onLeft ? -8 : 8) + "px " + Math.max(y - 12, 0) + "px";
    setAttr(label, "data-side", onLeft ? "left" : "right");
  }

  function clear() {
    label.hidden = true;
    for (const panel of chart.panels) if (panel.area()) panel.point(null);
  }

  box.addEventListener("pointermove", (event) => {
    const spot = spotOf(event);
    const panel = chart.panels.findIndex((one) => isIn(one.area(), spot));
    if (panel < 0) return leave();
    show(panel, nearest(chart.panels[panel], stopsOf(panel), spot), selection.hover);
  });
  box.addEventListener("pointerleave", leave);

  function spotOf(event) {
    const frame = chart.root.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  }

  function leave() {
    clear();
    selection.hover(null);
  }

  box.addEventListener("keydown", (event) => {
    const next = step(event.key);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    show(next.panel, next.stop, selection.focus);
  });
  box.addEventListener("blur", () => {
    clear();
    selection.focus(null);
  });

  // Where a key leads: left and right along the panel, up and down to the panel above and below.
  function step(key) {
    if (!chart.ready()) return null;
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -PAGE, PageDown: PAGE };
    const last = stopsOf(at.panel).length - 1;
    if (key === "Home") return { panel: at.panel, stop: 0 };
    if (key === "End") return { panel: at.panel, stop: last };
    if (key in moves) {
      const from = at.stop < 0 ? last : at.stop + moves[key];
      return { panel: at.panel, stop: Math.min(Math.max(from, 0), last) };
    }
    if (key !== "ArrowUp" && key !== "ArrowDown") return null;
    const panel = at.panel + (key === "ArrowDown" ? 1 : -1);
    if (panel < 0 || panel >= chart.panels.length) return null;
    return { panel, stop: stopsOf(panel).length - 1 };
  }
}

function isIn(area, { x, y }) {
  if (area === null) return false;
  const slack = area.em;
  return (
    x > area.left - slack &&
    x < area.right + slack &&
    y > area.top - slack &&
    y < area.bottom + slack
  );
}

// The stop nearest to a spot; those that lie on no line of their own are told apart by x alone.
function nearest(panel, stops, spot) {
  let best = -1;
  let least = Infinity;
  stops.forEach((stop, i) => {
    const { x, y } = panel.place(stop);
    const distance = Math.hypot(x - spot.x, stop.y === null ? 0 : y - spot.y);
    if (distance < least) [best, least] = [i, distance];
  });
  return best;
}
