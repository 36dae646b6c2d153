// How the pointer and the keyboard reach tokens: one tab stop a lane, arrows move it, Enter pins.

import { setAttr } from "./dom.js";
import { describeToken } from "./words.js";

export function reachTokens(box, context) {
  const { selection } = context;
  const tokenOf = (event) => event.target.closest?.(".sv-tok") ?? null;
  let stop = null; // the token that holds the lane's tab stop

  function setStop(span) {
    if (stop === span) return;
    if (stop) for (const name of ["tabindex", "role", "aria-label"]) stop.removeAttribute(name);
    stop = span;
    if (!span) return;
    setAttr(span, "tabindex", "0");
    setAttr(span, "role", "button");
    setAttr(span, "aria-label", describeToken(context.find(span.dataset.k)));
  }

  box.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "touch") selection.hover(tokenOf(event)?.dataset.k ?? null);
  });
  box.addEventListener("pointerleave", () => selection.hover(null));
  box.addEventListener("click", (event) => {
    const span = tokenOf(event);
    if (!span || String(window.getSelection())) return;
    setStop(span);
    selection.togglePin(span.dataset.k);
    // A finger has no hover: focus brings up the short form beside the token.
    if (event.pointerType === "touch") span.focus({ preventScroll: true });
  });
  box.addEventListener("focusin", (event) => {
    const span = tokenOf(event);
    if (span) selection.focus(span.dataset.k);
  });
  box.addEventListener("focusout", () => selection.focus(null));
  box.addEventListener("keydown", (event) => {
    const span = tokenOf(event);
    if (!span) return;
    if (event.key === "Enter") {
      selection.togglePin(span.dataset.k);
      event.preventDefault();
    }
    const next = neighbour(box, span, event.key);
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    setStop(next);
    next.focus();
  });
  // The tab stop must be on a token that is there.
  context.onSettled(() => {
    if (stop && stop.isConnected && stop.getClientRects().length > 0) return;
    setStop(firstVisible(box));
  });
}

function firstVisible(box) {
  for (const span of box.querySelectorAll(".sv-tok")) {
    if (span.getClientRects().length > 0) return span;
  }
  return null;
}

// Arrows follow reading order; up and down go to the nearest token on the next line.
function neighbour(box, span, key) {
  const rtl = getComputedStyle(box).direction === "rtl";
  const forward = key === "ArrowDown" || key === (rtl ? "ArrowLeft" : "ArrowRight");
  const backward = key === "ArrowUp" || key === (rtl ? "ArrowRight" : "ArrowLeft");
  const vertical = key === "ArrowDown" || key === "ArrowUp";
  if (!forward && !backward && key !== "Home" && key !== "End") return null;
  const spans = [...box.querySelectorAll(".sv-tok")].filter((s) => s.getClientRects().length > 0);
  if (key === "Home") return spans[0];
  if (key === "End") return spans.at(-1);
  const at = spans.indexOf(span);
  if (!vertical) return spans[at + (forward ? 1 : -1)] ?? span;
  return onNextLine(spans, at, forward ? 1 : -1) ?? span;
}

function onNextLine(spans, at, direction) {
  const from = spans[at].getBoundingClientRect();
  let best = null;
  for (let i = at + direction; spans[i]; i += direction) {
    const box = spans[i].getBoundingClientRect();
    const away = (box.top - from.top) * direction;
    if (away < from.height * 0.5) continue;
    if (best && (box.top - best.top) * direction > from.height * 0.5) break;
    const distance = Math.abs(box.left - from.left);
    if (!best || distance < best.distance) best = { span: spans[i], top: box.top, distance };
  }
  return best?.span ?? null;
}
