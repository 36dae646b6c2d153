// SVG elements, and the marks that tell lines apart without colour.

import { setAttr } from "./dom.js";

const NAMESPACE = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) setAttr(element, key, value);
  element.append(...children);
  return element;
}

// Outlines around (0, 0), about 8 pixels wide.
export const MARKS = {
  circle: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
  square: "M-3.5 -3.5h7v7h-7z",
  diamond: "M0 -5l5 5l-5 5l-5 -5z",
};

export const moved = (x, y) => "translate(" + x.toFixed(1) + " " + y.toFixed(1) + ")";
