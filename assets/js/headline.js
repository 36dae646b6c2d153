// What is said about the run as a whole: the headline, why it is below 1x, and whether both lanes
// wrote the same text.

import { DASH, quote, share, times } from "./format.js";
import { isGreedy } from "./words.js";

export function headline(frame, model) {
  const speedup = frame.figures?.speedup;
  if (typeof speedup === "number") return { value: times(speedup), words: comparison(speedup) };
  return { value: DASH, words: whyNotMeasured(frame, model) };
}

function comparison(speedup) {
  const shown = speedup.toFixed(2);
  if (shown === "1.00") return "as fast as the target alone";
  return speedup > 1 ? "faster than the target alone" : "slower than the target alone";
}

function whyNotMeasured(frame, model) {
  if (model.start && !model.lanes.baseline) return "not measured: baseline switched off";
  if (frame.phase === "failed") return "not measured: the run failed";
  if (frame.phase === "empty") return "no run yet";
  if (frame.phase === "loading") return "waiting for the models";
  return "waiting for the first tokens";
}

// Why a run lies below 1x, from its own figures; null where too little was measured to say.
export function whySlower(figures) {
  if (!figures || typeof figures.speedup !== "number" || figures.speedup >= 1) return null;
  const parts = [];
  if (typeof figures.cost_ratio === "number") {
    parts.push("drafting one token costs " + share(figures.cost_ratio) + " of a target call");
  }
  if (typeof figures.alpha === "number") {
    parts.push(share(figures.alpha) + " of the tested guesses were kept");
  }
  if (typeof figures.verify_ratio === "number") {
    parts.push("a verifying call costs " + share(figures.verify_ratio) + " of a plain one");
  }
  if (parts.length === 0) return null;
  const theory =
    typeof figures.predicted_speedup === "number"
      ? " From these, theory expects " + times(figures.predicted_speedup) + "."
      : "";
  const text = parts.join("; ");
  return text[0].toUpperCase() + text.slice(1) + "." + theory;
}

// Whether both lanes wrote the same, and if not, where and by how little they parted.
export function comparisonOfTexts(done, settings) {
  if (!done) return "";
  if (!isGreedy(settings))
    return done.same_as_baseline === true ? "identical text" : "sampling: two independent draws";
  if (done.same_as_baseline === true) return "identical text";
  const apartAt = done.divergence;
  if (!apartAt) return done.same_as_baseline === false ? "texts differ in length" : "";
  const gap = typeof apartAt.gap === "number" ? Math.abs(apartAt.gap) : null;
  const where = "token " + (apartAt.index + 1);
  if (gap === null)
    return (
      "texts part at " +
      where +
      ": " +
      quote(apartAt.text) +
      " here, " +
      quote(apartAt.baseline_text) +
      " in the baseline"
    );
  return (
    "near tie at " +
    where +
    ": logits differ by " +
    (gap < 0.1 ? Number(gap.toPrecision(2)) : gap.toFixed(2))
  );
}
