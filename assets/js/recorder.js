// What is drawn on a canvas, as SVG instead: takes the place of a 2D context and keeps rectangles
// and text as elements. Only what the time axis uses.

import { svg } from "./svg.js";

const ANCHORS = { left: "start", center: "middle", right: "end" };

// `measure` is a real context, for the width of text. The drawing is in `root`.
export function createRecorder(width, height, measure) {
  const root = svg("svg", { width, height, viewBox: "0 0 " + width + " " + height });
  const pen = { fillStyle: "", strokeStyle: "", lineWidth: 1, globalAlpha: 1 };
  Object.assign(pen, { font: "", textAlign: "left", textBaseline: "alphabetic" });
  let parent = root;
  let bounds = null;

  function box(x, y, boxWidth, boxHeight, paint) {
    const opacity = pen.globalAlpha;
    parent.append(svg("rect", { x, y, width: boxWidth, height: boxHeight, opacity, ...paint }));
  }

  return Object.assign(pen, {
    root,
    fillRect(x, y, w, h) {
      if (w > 0 && h > 0) box(x, y, w, h, { fill: pen.fillStyle });
    },
    strokeRect(x, y, w, h) {
      const stroke = { stroke: pen.strokeStyle, "stroke-width": pen.lineWidth };
      box(x, y, w, h, { fill: "none", ...stroke });
    },
    fillText(text, x, y) {
      const place = { x, y, fill: pen.fillStyle, "text-anchor": ANCHORS[pen.textAlign] };
      const lowered = pen.textBaseline === "middle" ? "0.35em" : null;
      parent.append(svg("text", { ...place, dy: lowered, style: "font: " + pen.font }, text));
    },
    measureText(text) {
      measure.font = pen.font;
      return measure.measureText(text);
    },
    save() {},
    beginPath() {},
    rect(...values) {
      bounds = values;
    },
    // A viewport within the drawing clips what is put into it.
    clip() {
      const [x, y, w, h] = bounds;
      const inner = svg("svg", { x, y, width: w, height: h, viewBox: bounds.join(" ") });
      parent.append(inner);
      parent = inner;
    },
    restore() {
      parent = root;
    },
  });
}
