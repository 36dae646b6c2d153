// What a screen reader is told, at most one announcement every two seconds, the newest last.

import { setText } from "./dom.js";
import { count, times } from "./format.js";
import { roundSummary, stepSummary } from "./words.js";

const EVERY_MS = 2000;

export function createAnnouncer(root) {
  const region = root.querySelector(".sv-announcer");
  let last = -Infinity;
  let waiting = null;
  let timer = 0;

  function speak() {
    timer = 0;
    last = performance.now();
    setText(region, waiting);
    waiting = null;
  }

  return function announce(text) {
    if (!text || text === region.textContent) return;
    waiting = text;
    if (timer) return;
    timer = setTimeout(speak, Math.max(0, last + EVERY_MS - performance.now()));
  };
}

const PHASES = {
  loading: "Loading the models",
  stopped: "Stopped",
  failed: "The run failed",
};

export function createNarrator(announce) {
  let said = "";
  let round = null;
  let step = "";

  function end(frame) {
    const { speedup, tokens } = frame.figures ?? {};
    const measured =
      typeof speedup === "number" ? ", " + times(speedup) + " the speed of the target alone" : "";
    return "Finished: " + count(tokens ?? 0, "token") + measured;
  }

  return function tell(frame) {
    const current = frame.decision?.round ?? null;
    const now = frame.stepping && frame.decision ? stepSummary(frame.decision) : "";
    if (now !== step) announce(now);
    step = now;
    if (current !== round && !frame.stepping) {
      round = current;
      if (round) announce(roundSummary(round));
    }
    const phase =
      frame.phase === "finished" ? (frame.atEnd ? end(frame) : "") : (PHASES[frame.phase] ?? "");
    if (phase !== said) announce(phase);
    said = phase;
  };
}
