// Each round's draft and target time, to scale, on one axis for both lanes. Drawn on a canvas:
// 1,500 rounds are 1,500 rectangles, not 1,500 elements.

import { setAttr, setHidden, setText } from "./dom.js";
import { milliseconds } from "./format.js";
import { isComplete, isReplay, leadLane, tellingKey, upperBound } from "./model.js";
import { createRecorder } from "./recorder.js";
import { framed, saveButtons } from "./save.js";
import { niceStep } from "./scale.js";
import { readTheme } from "./theme.js";

const LANE = 24;
const GAP = 8;
const TOP = 6;
const AXIS = 24;
const GUTTER = 84; // for the lanes' names
const MARGIN = 12;
const ROUNDS_SHOWN = 14; // in the close-up
const SAVED_NOTE =
  "Rounds on each lane's decode clock, to scale: first drafting, coloured, then the target call.";
const LEGIBLE = 3; // pixels a round must have for the whole run to be worth showing

export function createTimeline(root, { model, playhead, actions, selection }) {
  const canvas = root.querySelector(".sv-axis");
  const zoom = root.querySelector(".sv-zoom");
  let theme = readTheme(root);
  let width = 0;
  let wholeRun = null; // null until someone chooses: then what fits
  let drawn = "";
  let seen = false;

  new IntersectionObserver((entries) => {
    seen = entries.at(-1).isIntersecting;
    if (seen) actions.refresh();
  }).observe(canvas);
  new ResizeObserver(() => {
    width = canvas.clientWidth;
    redraw();
  }).observe(canvas);
  zoom.addEventListener("click", () => {
    wholeRun = !showsWhole();
    redraw();
  });
  const title = "Where the time goes";
  zoom.after(saveButtons(picture, title, "specviz-time"));
  canvas.addEventListener("click", (event) => {
    const spot = locate(event);
    if (spot) actions.seek(spot.time);
  });
  canvas.addEventListener("pointermove", (event) => {
    const spot = locate(event);
    selection.hover(spot?.round ? tellingKey(spot.round) : null);
  });
  canvas.addEventListener("pointerleave", () => selection.hover(null));

  function redraw() {
    drawn = "";
    actions.refresh();
  }

  function showsWhole() {
    if (wholeRun !== null) return wholeRun;
    const lane = leadLane(model);
    return (isReplay(model) || isComplete(model)) && lane.rounds.length * LEGIBLE < axisWidth();
  }

  const axisWidth = () => width - GUTTER - MARGIN;

  function locate(event) {
    const range = windowOf();
    if (!range || width === 0) return null;
    const box = canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - GUTTER) / axisWidth();
    const time = range.from + Math.min(Math.max(share, 0), 1) * (range.to - range.from);
    const row = Math.floor((event.clientY - box.top - TOP) / (LANE + GAP));
    const lane = Object.values(model.lanes)[row];
    return { time, round: lane?.rounds[upperBound(lane.ends, time)] ?? null };
  }

  // The stretch of time in view: all of it, or about 14 rounds around the playhead.
  function windowOf() {
    const lane = leadLane(model);
    if (!lane || model.seconds === 0) return null;
    if (showsWhole()) return { from: 0, to: model.seconds };
    const mean = lane.rounds.length ? lane.seconds / lane.rounds.length : model.seconds;
    const span = Math.min(model.seconds, mean * ROUNDS_SHOWN);
    const from = Math.min(Math.max(0, playhead.time - span * 0.7), model.seconds - span);
    return { from, to: from + span };
  }

  function render(frame) {
    const range = windowOf();
    const active = selection.active() ?? "";
    const state = [
      width,
      range?.from,
      range?.to,
      playhead.time,
      active,
      model.ordered.length,
    ].join();
    if (state === drawn || width === 0 || !(seen || frame.resting)) return;
    drawn = state;
    setText(zoom, range && showsWhole() ? "Close up" : "Whole run");
    setHidden(zoom, !range);
    draw(range, active);
    setAttr(canvas, "aria-label", describe(frame.decision));
  }

  const heightNow = () => TOP + (Object.keys(model.lanes).length || 2) * (LANE + GAP) + AXIS;

  function draw(range, active) {
    paint(fit(canvas, width, heightNow()), range, active);
  }

  function picture() {
    const recorder = createRecorder(width, heightNow(), canvas.getContext("2d"));
    paint(recorder, windowOf(), "");
    return framed(recorder.root, title, SAVED_NOTE, getComputedStyle(root));
  }

  function paint(context, range, active) {
    const lanes = Object.values(model.lanes);
    const height = heightNow();
    const x = (time) =>
      GUTTER +
      ((time - (range?.from ?? 0)) / ((range?.to ?? 1) - (range?.from ?? 0))) * axisWidth();
    const names = lanes.length ? lanes.map((lane) => lane.name) : ["speculative", "baseline"];
    names.forEach((name, row) => drawName(context, theme, name, TOP + row * (LANE + GAP)));
    if (!range) return;
    drawAxis(context, theme, range, x, height - AXIS);
    context.save();
    context.beginPath();
    context.rect(GUTTER - 2, 0, width - GUTTER + 2, height - AXIS);
    context.clip();
    lanes.forEach((lane, row) =>
      drawLane(context, lane, TOP + row * (LANE + GAP), x, range, active),
    );
    context.fillStyle = theme.ink;
    context.fillRect(x(playhead.time) - 1, 0, 2, height - AXIS);
    context.restore();
  }

  function drawLane(context, lane, y, x, range, active) {
    const first = upperBound(lane.ends, range.from);
    for (let i = first; i < lane.rounds.length && lane.rounds[i].start < range.to; i += 1) {
      const round = lane.rounds[i];
      const lit = active.startsWith(round.lane + ":" + round.index + ":");
      context.globalAlpha = round.start >= playhead.time ? 0.25 : 1;
      drawRound(context, round, y, x, lit);
    }
    context.globalAlpha = 1;
    if (lane.end && lane.seconds < range.to && playhead.time >= lane.seconds)
      drawEnd(context, lane, x(lane.seconds) + 8, y);
  }

  // Said where the bar ends: when it did, and how long before the other lane.
  function drawEnd(context, lane, left, y) {
    const ahead = model.seconds - lane.seconds;
    const long = "done at " + lane.seconds.toFixed(2) + " s, " + ahead.toFixed(2) + " s sooner";
    const room = width - MARGIN - left;
    context.fillStyle = theme.ink;
    context.font = "12px " + theme.font;
    context.textAlign = "left";
    context.textBaseline = "middle";
    const text = context.measureText(long).width < room ? long : lane.seconds.toFixed(2) + " s";
    if (context.measureText(text).width < room) context.fillText(text, left, y + LANE / 2 + 1);
  }

  function drawRound(context, round, y, x, lit) {
    const left = x(round.start);
    const right = x(round.end);
    const gap = right - left > 6 ? 1 : 0;
    const middle = x(round.draftEnd);
    const speculative = round.lane === "speculative";
    context.fillStyle = theme.drafting;
    context.fillRect(left, y, middle - left, LANE);
    context.fillStyle = speculative ? theme.target : theme.edge;
    context.fillRect(middle, y, Math.max(right - middle - gap, 0.5), LANE);
    if (right - middle > 24 && speculative && !round.veiled) {
      context.fillStyle = theme.surface;
      context.font = "600 12px " + theme.font;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText("+" + round.committed, (middle + right - gap) / 2, y + LANE / 2 + 1);
    }
    if (!lit) return;
    context.strokeStyle = theme.ink;
    context.lineWidth = 3;
    context.strokeRect(left - 1.5, y - 2.5, Math.max(right - left, 2) + 2, LANE + 5);
  }

  return {
    render,
    retheme() {
      theme = readTheme(root);
      drawn = "";
    },
  };
}

function fit(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const pixels = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) {
    [canvas.width, canvas.height] = pixels;
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

function drawName(context, theme, name, y) {
  context.fillStyle = theme.muted;
  context.font = "12px " + theme.font;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(name, 0, y + LANE / 2 + 1);
}

function drawAxis(context, theme, range, x, y) {
  const step = niceStep((range.to - range.from) / 7);
  context.font = "12px " + theme.font;
  context.textBaseline = "alphabetic";
  for (let k = Math.ceil(range.from / step); k * step <= range.to; k += 1) {
    const at = x(k * step);
    context.fillStyle = theme.line;
    context.fillRect(at, 0, 1, y + 2);
    context.fillStyle = theme.muted;
    const label = tick(k * step, step);
    const half = context.measureText(label).width / 2;
    context.textAlign = at < half ? "left" : at > x(range.to) - half ? "right" : "center";
    context.fillText(label, at, y + 16);
  }
}

function tick(value, step) {
  return value.toFixed(step >= 1 ? 0 : step >= 0.1 ? 1 : 2) + " s";
}

function describe(decision) {
  if (!decision) return "Time axis of both lanes";
  const round = decision.round;
  return (
    "Round " +
    (round.index + 1) +
    ": drafting took " +
    milliseconds(round.draftEnd - round.start) +
    ", the target call " +
    milliseconds(round.verifyEnd - round.draftEnd) +
    ", and added " +
    round.committed +
    (round.committed === 1 ? " token" : " tokens")
  );
}
