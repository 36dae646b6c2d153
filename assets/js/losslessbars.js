// The bars of the exact view: two laws that can be dragged, and what is written, part on part.

import { probability } from "./format.js";
import { linear } from "./scale.js";
import { svg } from "./svg.js";

const HEIGHT = 236;
const TOP = 22;
const BASE = HEIGHT - 28;
const STEP = 0.02;
const LARGE = 0.1;

// `change(which, index, value)` is called while a bar is dragged or moved by a key.
export function lawBars(box, tokens, change) {
  const state = { p: [], q: [] };
  const root = svg("svg", { class: "law-svg", height: HEIGHT });
  const bars = ["p", "q"].flatMap((which) => tokens.map((_, i) => bar(which, i)));
  const overlaps = tokens.map(() => svg("rect", { class: "law-min", "pointer-events": "none" }));
  const names = tokens.map((token) => svg("text", { class: "law-name" }, token));
  root.append(...bars.map((one) => one.group), ...overlaps, ...names);
  box.append(root);

  function bar(which, index) {
    const shape = svg("rect", { class: "law-bar law-" + which });
    const value = svg("text", { class: "law-value" });
    const hit = svg("rect", {
      class: "law-hit",
      tabindex: 0,
      role: "slider",
      "aria-orientation": "vertical",
      "aria-label": which + " of " + tokens[index],
      "aria-valuemin": 0,
      "aria-valuemax": 1,
    });
    const group = svg("g", {}, shape, value, hit);
    hit.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      hit.focus();
      hit.setPointerCapture(event.pointerId);
      change(which, index, heightAt(event));
    });
    hit.addEventListener("pointermove", (event) => {
      if (hit.hasPointerCapture(event.pointerId)) change(which, index, heightAt(event));
    });
    hit.addEventListener("keydown", (event) => {
      const to = keyed(event.key, state[which][index]);
      if (to === null) return;
      event.preventDefault();
      event.stopPropagation();
      change(which, index, to);
    });
    return { which, index, group, shape, value, hit };
  }

  function heightAt(event) {
    const y = event.clientY - root.getBoundingClientRect().top;
    return (BASE - y) / (BASE - TOP);
  }

  function show(p, q) {
    Object.assign(state, { p, q });
    const width = box.clientWidth;
    const slot = width / tokens.length;
    const thick = Math.min(36, slot * 0.36);
    const y = linear([0, 1], [BASE, TOP]);
    root.setAttribute("width", width);
    for (const { which, index, shape, value, hit } of bars) {
      const at = state[which][index];
      const x = slot * (index + 0.5) + (which === "p" ? -thick - 1 : 1);
      place(shape, x, y(at), thick, BASE - y(at));
      place(hit, x - 1, 0, thick + 2, HEIGHT);
      value.textContent = probability(at);
      value.setAttribute("x", x + thick / 2);
      value.setAttribute("y", y(at) - 6);
      hit.setAttribute("aria-valuenow", at.toFixed(3));
    }
    tokens.forEach((_, i) => {
      const low = Math.min(p[i], q[i]);
      place(overlaps[i], slot * (i + 0.5) - thick - 1, y(low), 2 * thick + 2, BASE - y(low));
      names[i].setAttribute("x", slot * (i + 0.5));
      names[i].setAttribute("y", HEIGHT - 8);
    });
  }

  return { show };
}

function keyed(key, value) {
  const steps = { ArrowUp: STEP, ArrowRight: STEP, ArrowDown: -STEP, ArrowLeft: -STEP };
  const leaps = { PageUp: LARGE, PageDown: -LARGE };
  if (key in steps) return value + steps[key];
  if (key in leaps) return value + leaps[key];
  if (key === "Home") return 0;
  return key === "End" ? 1 : null;
}

// What is written: accepted and redrawn parts stacked, and p as a line on each token.
export function writtenBars(box, tokens) {
  const root = svg("svg", { class: "law-svg", height: HEIGHT, role: "img" });
  box.append(root);

  function show(p, law) {
    const width = box.clientWidth;
    const slot = width / tokens.length;
    const thick = Math.min(74, slot * 0.74);
    const most = Math.max(1, ...law.written);
    const y = linear([0, most], [BASE, TOP]);
    root.setAttribute("width", width);
    root.setAttribute("aria-label", spoken(tokens, p, law));
    root.replaceChildren(
      ...tokens.flatMap((token, i) => {
        const x = slot * (i + 0.5) - thick / 2;
        const off = Math.abs(law.written[i] - p[i]) > 1e-9;
        const middle = slot * (i + 0.5);
        const high = Math.max(law.written[i], p[i]);
        return [
          placed("law-kept", x, y(law.kept[i]), thick, BASE - y(law.kept[i])),
          placed("law-redrawn", x, y(law.written[i]), thick, y(law.kept[i]) - y(law.written[i])),
          svg("path", { class: "law-wanted", d: outline(x, y(p[i]), thick) }),
          label("law-value" + (off ? " law-off" : ""), middle, y(high) - 6, valueText(law, p, i)),
          label("law-name", middle, HEIGHT - 8, token),
        ];
      }),
    );
  }

  return { show };
}

const outline = (x, y, width) => "M" + x + " " + BASE + "V" + y + "h" + width + "V" + BASE;

function valueText(law, p, i) {
  const off = law.written[i] - p[i];
  if (Math.abs(off) < 1e-9) return probability(law.written[i]);
  return probability(law.written[i]) + " (" + (off > 0 ? "+" : "\u2212") + probability(Math.abs(off)) + ")";
}

function spoken(tokens, p, law) {
  const parts = tokens.map(
    (token, i) => token + " " + probability(law.written[i]) + ", wanted " + probability(p[i]),
  );
  return "What is written: " + parts.join("; ");
}

function placed(kind, ...where) {
  const rect = svg("rect", { class: kind });
  place(rect, ...where);
  return rect;
}

function place(rect, x, y, width, height) {
  for (const [name, value] of Object.entries({ x, y, width, height }))
    rect.setAttribute(name, Math.max(0, value).toFixed(2));
}

function label(kind, x, y, text) {
  return svg("text", { class: kind, x, y }, text);
}
