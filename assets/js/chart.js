// A chart: the panels of one figure, one below the other, as one SVG in the size of its box.

import { setAttr } from "./dom.js";
import { createPanel } from "./panel.js";
import { svg } from "./svg.js";

// Room around a panel, in units of the text's size.
const LEFT = 4.4;
const RIGHT = 1.6;
const LEGEND = 1.9;
const TITLES = 2.9;
const GAP = 0.8;

export function createChart(box, figure) {
  const root = svg("svg", { class: "sv-chart", "aria-hidden": "true" });
  const panels = figure.panels.map(createPanel);
  root.append(...panels.map((panel) => panel.element));
  box.append(root);
  let areas = null;

  // Measure the box. Cheap where nothing changed; false where there is no room to draw.
  function measure() {
    const { clientWidth: width, clientHeight: height } = box;
    if (width === 0 || height === 0) return false;
    const em = parseFloat(getComputedStyle(root).fontSize);
    areas = areasIn(width, height, em, panels.length);
    setAttr(root, "viewBox", "0 0 " + width + " " + height);
    setAttr(root, "width", width);
    setAttr(root, "height", height);
    return true;
  }

  return {
    root,
    panels,
    measure,
    ready: () => areas !== null,
    draw: (views) => views.forEach((view, i) => panels[i].draw(view, areas[i])),
  };
}

function areasIn(width, height, em, count) {
  const each = (height - (count - 1) * GAP * em) / count;
  return Array.from({ length: count }, (_, i) => {
    const start = i * (each + GAP * em);
    const area = {
      left: LEFT * em,
      right: width - RIGHT * em,
      top: start + LEGEND * em,
      bottom: start + each - TITLES * em,
      em,
    };
    return { ...area, key: Object.values(area).join() };
  });
}
