// Cumulative JSON lines -> events. Only what is new is parsed; a text that does not continue the
// last one is a new run.

import { applyEvent, resetModel } from "./model.js";

export function createFeed(model) {
  let seen = "";
  let consumed = 0;

  // Returns {reset, events}: whether a new run began, and how many events were applied.
  return function feed(value) {
    const text = typeof value === "string" ? value : "";
    if (text === seen) return { reset: false, events: 0 };
    const reset = !text.startsWith(seen);
    if (reset || seen === "") {
      consumed = 0;
      resetModel(model);
    }
    const startsBefore = model.start;
    seen = text;
    const events = consume(text);
    return { reset: reset || model.start !== startsBefore, events };
  };

  function consume(text) {
    let events = 0;
    while (consumed < text.length) {
      const newline = text.indexOf("\n", consumed);
      const end = newline < 0 ? text.length : newline;
      const line = text.slice(consumed, end).trim();
      if (line && !apply(line, newline >= 0)) break;
      if (line) events += 1;
      consumed = newline < 0 ? end : end + 1;
    }
    return events;
  }

  // A last line without its newline may still be growing: leave it for the next feed.
  function apply(line, isWhole) {
    let event;
    try {
      event = JSON.parse(line);
    } catch {
      if (!isWhole) return false;
      model.error = "A line of this run could not be read. Run it again, or open the trace anew.";
      return true;
    }
    if (event.e === "start" && model.start !== null) resetModel(model);
    applyEvent(model, event);
    return true;
  }
}
