// JSON lines -> events. Only what is new is parsed; a text that does not continue the last one is
// a new run.

import { applyEvent, resetModel } from "./model.js";

export function createFeed(model) {
  let seen = ""; // the whole text so far, where it comes whole
  let rest = ""; // a last line that is not complete yet

  // The text of a run so far; an empty one clears the stage. Returns {reset, events}: whether a
  // new run began, and how many events were applied.
  function feed(text) {
    const reset = text === "" || !text.startsWith(seen);
    if (reset || seen === "") {
      rest = "";
      resetModel(model);
    }
    const fresh = reset ? text : text.slice(seen.length);
    seen = text;
    const result = append(fresh);
    return { reset: reset || result.reset, events: result.events };
  }

  // Text that continues the run.
  function append(text) {
    const startBefore = model.start;
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    let events = 0;
    for (const line of lines) if (line.trim() && apply(line, true)) events += 1;
    if (rest.trim() && apply(rest, false)) {
      events += 1;
      rest = "";
    }
    return { reset: model.start !== startBefore, events };
  }

  // A last line without its newline may still be growing: leave it for the next time.
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

  return { feed, append };
}
