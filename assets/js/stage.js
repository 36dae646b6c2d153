// The stage: one model, one playhead, and the parts that draw them, one frame at a time.

import { createAnnouncer, createNarrator } from "./a11y.js";
import { createCards } from "./cards.js";
import { createPlayhead, lastDecision } from "./clock.js";
import { reducedMotion, setAttr, setHidden, setText } from "./dom.js";
import { sourceKeys } from "./evidence.js";
import { createFeed } from "./feed.js";
import { createInspector } from "./inspector.js";
import { createLegend } from "./legend.js";
import { createModel, figuresAt, isComplete, isReplay, phase } from "./model.js";
import { createPlots } from "./plots.js";
import { createPointerTip } from "./pointer.js";
import { createPresentation } from "./present.js";
import { createSelection } from "./selection.js";
import { stateAfter } from "./steps.js";
import { createStream } from "./stream.js";
import { watchTheme } from "./theme.js";
import { createTimeline } from "./timeline.js";
import { createTransport } from "./transport.js";

const QUIET_MS = 800;

export function createStage(root, { definitions = {}, onSelect = null }) {
  const model = createModel();
  const feedLines = createFeed(model);
  const playhead = createPlayhead(model);
  const announce = createAnnouncer(root);
  const narrate = createNarrator(announce);
  const settledCalls = [];
  const costs = { frames: 0, last: 0, worst: 0, worstFeed: 0 };
  let request = 0;
  let clock = 0; // when the last frame was, for the playhead
  let settledAt = 0;
  let fedAt = -Infinity;
  let quietTimer = 0;

  const selection = createSelection(() => {
    onSelect?.(selection.active() ? find(selection.active()) : null);
    refresh();
  });
  const actions = createActions();
  const context = {
    model,
    playhead,
    selection,
    actions,
    definitions,
    announce,
    find,
    onSettled: (call) => settledCalls.push(call),
  };
  const parts = {
    cards: createCards(root, context),
    stream: createStream(root, context),
    transport: createTransport(root, context),
    timeline: createTimeline(root, context),
    inspector: createInspector(root, context),
    plots: createPlots(root, context),
  };
  const pointer = createPointerTip(root, { ...context, span: parts.stream.span });
  createLegend(root);
  createPresentation(root, context);
  let lit = null;
  let lights = []; // [key, class] of the tokens that are lit

  watchTheme(() => {
    parts.timeline.retheme();
    parts.plots.retheme();
    refresh();
  });
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && selection.unpin()) event.preventDefault();
  });
  refresh();

  function find(key) {
    const [lane, r, i] = key.split(":");
    const round = model.lanes[lane]?.rounds[Number(r)];
    const token = round?.tokens[Number(i)];
    if (!token) return null;
    const index = Number(i);
    return {
      key,
      lane,
      round,
      token,
      index,
      settings: model.start?.settings,
      ...stateOf(round, index),
    };
  }

  // How the token looks at the playhead, and whether the target has scored its round by then.
  function stateOf(round, index) {
    const { full, steps } = playhead.position(model.lanes[round.lane]);
    if (round.index !== full)
      return { state: round.index < full ? round.tokens[index].fate : null, verified: true };
    return { state: stateAfter(round, index, steps), verified: steps > round.drafted };
  }

  function createActions() {
    const then =
      (move) =>
      (...values) => {
        move(...values);
        refresh();
      };
    return {
      toggle: then(() => (isMoving() ? playhead.pause() : resume())),
      start: then(() => {
        playhead.pause();
        playhead.goTo(0);
      }),
      end: then(() => (isComplete(model) ? toEnd() : playhead.follow())),
      previous: then(() => playhead.roundBy(-1)),
      next: then(() => playhead.roundBy(1)),
      previousStep: then(() => playhead.stepBy(-1)),
      nextStep: then(() => playhead.stepBy(1)),
      seek: then((time) => playhead.seek(time)),
      follow: then(() => playhead.follow()),
      setRate: then((rate) => (playhead.rate = rate)),
      unpin: then(() => selection.unpin()),
      refresh,
    };
  }

  function toEnd() {
    playhead.pause();
    playhead.goTo(model.seconds);
  }

  function resume() {
    if (playhead.atEnd() && !isComplete(model)) return playhead.follow();
    if (playhead.atEnd()) playhead.goTo(0);
    clock = 0;
    return playhead.play();
  }

  // Something will change by itself: the playhead runs, or a live run is being followed.
  function isMoving() {
    return playhead.playing || (playhead.following && model.start !== null && !isComplete(model));
  }

  function feed(lines) {
    const begin = performance.now();
    const { reset, events } = feedLines(lines);
    if (reset) restart();
    if (playhead.following && !isReplay(model)) playhead.time = model.seconds;
    if (reset || events > 0) noteFeed();
    costs.worstFeed = Math.max(costs.worstFeed, performance.now() - begin);
  }

  // When no line has come for a while (a run that goes step by step), things are at rest.
  function noteFeed() {
    fedAt = performance.now();
    clearTimeout(quietTimer);
    quietTimer = setTimeout(refresh, QUIET_MS + 20);
    refresh();
  }

  function restart() {
    playhead.reset();
    parts.stream.reset();
    parts.inspector.reset();
    parts.plots.reset();
    if (!isReplay(model)) return;
    if (reducedMotion.matches) playhead.seek(model.seconds);
    else resume();
  }

  function refresh() {
    if (!request) request = requestAnimationFrame(draw);
  }

  function draw(now) {
    request = 0;
    const begin = performance.now();
    move(now);
    const frame = snapshot();
    setAttr(root, "data-phase", frame.phase);
    setAttr(root, "data-motion", frame.stepping || (playhead.playing && playhead.rate < 1));
    renderStrip(root, model, frame);
    const whole = parts.stream.render(frame);
    for (const name of ["cards", "transport", "timeline", "inspector", "plots"])
      parts[name].render(frame);
    light();
    pointer.render();
    narrate(frame);
    settle(now, frame.moving);
    costs.frames += 1;
    costs.last = performance.now() - begin;
    costs.worst = Math.max(costs.worst, costs.last);
    if (playhead.playing || !whole) refresh();
  }

  function move(now) {
    if (playhead.playing && clock > 0) playhead.advance((now - clock) / 1000);
    clock = playhead.playing ? now : 0;
    if (!playhead.playing || !playhead.atEnd()) return;
    if (isComplete(model)) toEnd();
    else playhead.follow();
  }

  function snapshot() {
    return {
      phase: phase(model),
      moving: isMoving(),
      resting: !isMoving() || (!playhead.playing && performance.now() - fedAt > QUIET_MS),
      complete: isComplete(model),
      atStart: playhead.time === 0 && !playhead.step,
      atEnd: playhead.atEnd(),
      figures: figuresAt(model, playhead.time),
      decision: lastDecision(model, playhead),
      stepping: playhead.step !== null,
    };
  }

  // The chosen token, where it was copied from, its round on the axis and its points light up.
  function light() {
    const key = selection.active();
    if (key === lit) return;
    for (const [other, name] of lights) parts.stream.light(other, name, false);
    const found = key ? find(key) : null;
    lights = found ? [[key, "sv-lit"], ...sourceKeys(found, model)] : [];
    for (const [other, name] of lights) parts.stream.light(other, name, true);
    parts.plots.mark(found?.round ?? null);
    lit = key;
  }

  // Work that may wait until nothing moves, or half a second at most.
  function settle(now, moving) {
    if (moving && now - settledAt < 500) return;
    settledAt = now;
    for (const call of settledCalls) call();
  }

  costs.plots = parts.plots.costs;
  return { feed, actions, costs, model, playhead };
}

function renderStrip(root, model, frame) {
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
  if (frame.phase !== "stopped") return "";
  const lane = model.lanes.speculative ?? model.lanes.baseline;
  return (
    "Stopped after " +
    lane.tokens +
    (lane.tokens === 1 ? " token" : " tokens") +
    "; everything so far is kept."
  );
}
