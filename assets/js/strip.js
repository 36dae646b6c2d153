// The strip above the stage: loading, stopped, failed.

import { setHidden, setText } from "./dom.js";

export function renderStrip(root, model, frame) {
  const strip = root.querySelector(".sv-strip");
  const message = stripMessage(model, frame);
  setHidden(strip, message === "");
  strip.dataset.kind = frame.phase === "failed" ? "failed" : "note";
  setText(strip.querySelector(".sv-strip-text"), message);
  const bar = strip.querySelector(".sv-strip-bar");
  const progress = model.status?.progress;
  setHidden(bar, !model.status);
  if (typeof progress === "number") bar.value = progress;
  else bar.removeAttribute("value");
}

function stripMessage(model, frame) {
  if (model.error !== null) return model.error;
  if (model.status) return model.status.message;
  if (frame.phase !== "stopped" && frame.phase !== "failed") return "";
  const lane = model.lanes.speculative ?? model.lanes.baseline;
  return (
    (frame.phase === "stopped" ? "Stopped after " : "This run failed after ") +
    lane.tokens +
    (lane.tokens === 1 ? " token" : " tokens") +
    "; everything so far is kept."
  );
}
