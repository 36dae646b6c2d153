// Both lanes with their heads, and the switch that hides what was thrown away.

import { setAttr, setHidden, setText } from "./dom.js";
import { rate, seconds } from "./format.js";
import { createLaneView, textAt } from "./lane.js";
import { reachTokens } from "./reach.js";

export function createStream(root, context) {
  const { model, playhead, selection } = context;
  const views = {};
  const parts = {};
  for (const element of root.querySelectorAll(".sv-lane")) {
    const name = element.dataset.lane;
    views[name] = createLaneView(element);
    parts[name] = {
      element,
      who: element.querySelector(".sv-lane-who"),
      state: element.querySelector(".sv-lane-state"),
      rate: element.querySelector(".sv-lane-rate"),
      clock: element.querySelector(".sv-lane-clock"),
      empty: element.querySelector(".sv-empty"),
      copy: element.querySelector(".sv-copy"),
    };
    reachTokens(views[name].box, context);
    bindCopy(element, name, context);
  }
  bindThrown(root);

  function render(frame) {
    let whole = true;
    for (const [name, view] of Object.entries(views)) {
      const lane = model.lanes[name];
      setHidden(parts[name].element, model.start !== null && !lane);
      if (lane) whole = view.render(lane, playhead.position(lane)) && whole;
      renderHead(parts[name], name, lane, frame);
      const some = Boolean(lane && lane.rounds.length > 0);
      setText(parts[name].empty, some || model.veiled ? "" : emptyText(frame, name));
      setHidden(parts[name].copy, !some);
    }
    return whole;
  }

  function renderHead(part, name, lane, frame) {
    const own = name === "speculative" ? "tokens_per_s" : "baseline_tokens_per_s";
    const measured = lane && frame.figures ? frame.figures[own] : null;
    const who = lane ? whoRuns(model.start, name) : "";
    setText(part.who, who);
    setAttr(part.who, "title", who);
    setText(part.rate, measured ? rate(measured) + " tok/s" : "");
    setText(part.clock, seconds(lane ? Math.min(playhead.time, lane.seconds) : 0));
    setText(part.state, lane ? laneState(lane, playhead, frame) : "");
  }

  function toNewest() {
    for (const view of Object.values(views)) view.toNewest();
  }

  function light(key, name, on) {
    const span = spanOf(views, key);
    if (span) span.classList.toggle(name, on);
  }

  return {
    render,
    toNewest,
    light,
    span: (key) => spanOf(views, key),
    view: (name) => views[name],
    reset() {
      for (const view of Object.values(views)) view.reset();
      selection.clear();
    },
  };
}

function spanOf(views, key) {
  if (!key) return null;
  const [lane, round, index] = key.split(":");
  return views[lane]?.span(Number(round), Number(index)) ?? null;
}

function whoRuns(start, name) {
  const { target, draft } = start.pair;
  if (name === "baseline") return target + " alone" + (start.baseline_reused ? ", reused" : "");
  return (
    (start.drafter === "draft model" ? draft || "a draft" : start.drafter) +
    " drafts, " +
    target +
    " verifies"
  );
}

const ENDED = {
  eos: "ended by itself",
  length: "token limit reached",
  stop: "stop string met",
  context: "context full",
  stopped: "stopped",
  error: "failed",
};

function laneState(lane, playhead, frame) {
  if (playhead.time >= lane.seconds && lane.end) return ENDED[lane.end.finish_reason] ?? "";
  return frame.moving ? "" : "paused";
}

function emptyText(frame, name) {
  if (frame.phase === "failed") return "";
  if (frame.phase === "loading")
    return name === "speculative" ? "The models are being loaded." : "";
  if (frame.phase === "running") return "Reading the prompt.";
  if (frame.phase !== "empty") return "No tokens.";
  return name === "speculative"
    ? "Here the text appears, every token marked with what became of it. Press Run."
    : "Here the target writes alone, for comparison.";
}

function bindThrown(root) {
  const button = root.querySelector(".sv-thrown");
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-checked") !== "true";
    setAttr(button, "aria-checked", on);
    root.dataset.thrown = on ? "show" : "hide";
  });
}

function bindCopy(element, name, { model, playhead, announce }) {
  const button = element.querySelector(".sv-copy");
  button.addEventListener("click", async () => {
    const lane = model.lanes[name];
    if (!lane) return;
    const copied = await copyText(textAt(lane, playhead.position(lane)));
    setText(button, copied ? "Copied" : "Select and copy by hand");
    announce(copied ? "Text copied" : "The browser did not allow copying");
    setTimeout(() => setText(button, "Copy text"), 1600);
  });
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

// Pages that are not served securely have no clipboard interface.
function copyBySelection(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "sv-hidden";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
