// One token as a span. Marks that are not part of the text are CSS generated content, so that
// selecting and copying give exactly the text.

import { el } from "./dom.js";

const UNSEEN = /^[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\ufe0f]+$/;

// The space before a word stays outside the marked body: it may hang at the end of a line.
export function tokenSpan(token, key) {
  const span = el("span", { class: "sv-tok", "data-k": key });
  fill(span, token.text);
  return span;
}

function fill(span, text) {
  const body = el("span", { class: "sv-b" });
  if (text === "" || UNSEEN.test(text)) body.classList.add("sv-unseen");
  const lead = text.startsWith(" ") && text.trim() !== "" ? " " : "";
  appendText(body, text.slice(lead.length));
  span.replaceChildren(lead, body);
}

// Line breaks get a span of their own, which carries the return mark.
function appendText(span, text) {
  if (!text.includes("\n")) {
    span.append(text);
    return;
  }
  for (const part of text.split(/(\n)/)) {
    if (part === "\n") span.append(el("span", { class: "sv-nl" }, "\n"));
    else if (part) span.append(part);
  }
}

// Shows a token in a state: a fate, "drafting", or null for not there yet.
export function showState(span, state) {
  const shown = span.dataset.f ?? null;
  if (state === shown && !span.hidden) return;
  if (state === null) {
    span.hidden = true;
    return;
  }
  span.hidden = false;
  if (state !== shown) span.dataset.f = state;
}

// Marks what lies behind a stop string: `kept` code points of this token stay.
export function cutToken(span, text, kept) {
  if (kept <= 0) {
    span.classList.add("sv-cut");
    return;
  }
  const points = Array.from(text);
  const tail = el("span", { class: "sv-cut" });
  fill(span, points.slice(0, kept).join(""));
  appendText(tail, points.slice(kept).join(""));
  span.append(tail);
}
