// The stage: one run, one playhead, and the parts that draw them, one frame at a time.

import { createActions } from "./actions.js";
import { createAnnouncer, createNarrator } from "./a11y.js";
import { createCards } from "./cards.js";
import { createPlayhead, lastDecision } from "./clock.js";
import { reducedMotion, setAttr } from "./dom.js";
import { createFeed } from "./feed.js";
import { createInspector } from "./inspector.js";
import { createJump } from "./jump.js";
import { bindKeys } from "./keys.js";
import { createLegend } from "./legend.js";
import { createLights } from "./lights.js";
import { createModel, figuresAt, isComplete, isReplay, keyOf, phase } from "./model.js";
import { createNarration } from "./narrationpanel.js";
import { createPacer } from "./pacer.js";
import { createPlots } from "./plots.js";
import { createPointerTip } from "./pointer.js";
import { createPredict } from "./predict.js";
import { createPredictCard } from "./predictcard.js";
import { createPresentation } from "./present.js";
import { createMemory } from "./remember.js";
import { createSelection } from "./selection.js";
import { stateAfter } from "./steps.js";
import { createStream } from "./stream.js";
import { renderStrip } from "./strip.js";
import { watchTheme } from "./theme.js";
import { createTimeline } from "./timeline.js";
import { createTransport } from "./transport.js";
import { createWalk } from "./walkpanel.js";

const QUIET_MS = 800;
const SCRUB_MS = 150; // two seeks closer than this are one drag: what explains waits for its end
const DRAWN = ["cards", "transport", "jump", "timeline", "plots", "predictCard"];
const EXPLAINING = ["narration", "inspector"];

export function createStage(root, { definitions = {}, onSelect = null }) {
  const record = createModel(); // all that was fed
  const model = createModel(); // what may be shown of it: all, unless verdicts are being guessed
  const lines = createFeed(record);
  const pacer = createPacer(draw, isLive);
  const playhead = createPlayhead(model);
  const announce = createAnnouncer(root);
  const narrate = createNarrator(announce);
  const settledCalls = [];
  const costs = { frames: 0, last: 0, worst: 0, worstFeed: 0 };
  const parts = {};
  let clock = 0; // when the last frame was, for the playhead
  let settledAt = 0;
  let fedAt = -Infinity;
  let quietTimer = 0;
  let soughtAt = -Infinity;
  let dragTimer = 0;
  let dragging = false;

  const selection = createSelection(() => {
    onSelect?.(selection.active() ? find(selection.active()) : null);
    refresh();
  });
  const predict = createPredict({
    record,
    model,
    playhead,
    show,
    rebuild: () => parts.stream.reset(),
  });
  const actions = createActions({
    root,
    model,
    playhead,
    selection,
    parts,
    predict,
    isMoving,
    resume,
    refresh,
    noteSeek,
  });
  const context = {
    model,
    playhead,
    selection,
    actions,
    definitions,
    announce,
    predict,
    find,
    look,
    memory: createMemory(),
    onSettled: (call) => settledCalls.push(call),
  };
  Object.assign(parts, {
    cards: createCards(root, context),
    stream: createStream(root, context),
    transport: createTransport(root, context),
    jump: createJump(root, context),
    timeline: createTimeline(root, context),
    narration: createNarration(root, context),
    inspector: createInspector(root, context),
    plots: createPlots(root, context),
    predictCard: createPredictCard(root, context),
    walk: createWalk(root, context),
    presentation: createPresentation(root, context),
  });
  const pointer = createPointerTip(root, { ...context, span: parts.stream.span });
  const light = createLights(context, parts);
  createLegend(root);
  bindKeys(root, actions);
  watchTheme(() => {
    parts.timeline.retheme();
    parts.plots.retheme();
    refresh();
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

  // What is explained: the chosen token or, at rest, the last decision. {found, decision}
  function look(frame) {
    const chosen = selection.active();
    const decision = chosen || !frame.resting ? null : frame.decision;
    const own = decision && decision.token !== null ? keyOf(decision.round, decision.token) : null;
    const key = chosen ?? own;
    return { found: key ? find(key) : null, decision };
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

  // A run that may be computing on this machine right now.
  function isLive() {
    return record.start !== null && !isReplay(record) && !isComplete(record);
  }

  function show() {
    Object.assign(model, predict.view());
  }

  // A run from its beginning, and more of a run that goes on.
  const feed = (text) => take(() => lines.feed(text));
  const append = (text) => take(() => lines.append(text));

  function take(read) {
    const begin = performance.now();
    const { reset, events } = read();
    if (reset) restart();
    else show();
    predict.hold();
    if (playhead.following && !isReplay(model)) playhead.time = model.seconds;
    if (reset || events > 0) noteFeed();
    const took = performance.now() - begin;
    pacer.spend(took);
    costs.worstFeed = Math.max(costs.worstFeed, took);
  }

  // When no line has come for a while (a run that goes step by step), things are at rest.
  function noteFeed() {
    fedAt = performance.now();
    clearTimeout(quietTimer);
    quietTimer = setTimeout(refresh, QUIET_MS + 20);
    refresh();
  }

  // The text does not scroll while it is dragged through: what scrolls by itself is painted far
  // beyond what is in view.
  function noteSeek() {
    const now = performance.now();
    clearTimeout(dragTimer);
    dragging = now - soughtAt < SCRUB_MS;
    dragTimer = setTimeout(endDrag, SCRUB_MS);
    soughtAt = now;
    setAttr(root, "data-drag", "on");
  }

  function endDrag() {
    dragging = false;
    setAttr(root, "data-drag", null);
    refresh();
  }

  function restart() {
    predict.reset();
    show();
    playhead.reset();
    parts.walk.stop();
    parts.stream.reset();
    parts.inspector.reset();
    parts.plots.reset();
    parts.walk.offerOnce();
    if (!isReplay(model)) return;
    if (reducedMotion.matches) playhead.seek(model.seconds);
    else resume();
  }

  function refresh() {
    pacer.soon();
  }

  function draw(now) {
    const begin = performance.now();
    move(now);
    const frame = snapshot();
    setAttr(root, "data-phase", frame.phase);
    setAttr(root, "data-motion", frame.stepping || (playhead.playing && playhead.rate < 1));
    renderStrip(root, model, frame);
    const whole = parts.stream.render(frame);
    for (const name of DRAWN) parts[name].render(frame);
    if (!dragging) for (const name of EXPLAINING) parts[name].render(frame);
    light();
    parts.stream.toNewest();
    pointer.render();
    if (!predict.state.on) narrate(frame);
    settle(now, frame.moving);
    costs.frames += 1;
    costs.last = performance.now() - begin;
    costs.worst = Math.max(costs.worst, costs.last);
    if (playhead.playing || !whole) pacer.inTurn();
  }

  function move(now) {
    if (playhead.playing && clock > 0) playhead.advance((now - clock) / 1000);
    clock = playhead.playing ? now : 0;
    if (!playhead.playing || !playhead.atEnd()) return;
    if (isComplete(model)) actions.end();
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
      decision: predict.decision() ?? lastDecision(model, playhead),
      stepping: playhead.step !== null,
    };
  }

  // Work that may wait until nothing moves, or half a second at most.
  function settle(now, moving) {
    if (moving && now - settledAt < 500) return;
    settledAt = now;
    for (const call of settledCalls) call();
  }

  return { feed, append, interval: pacer.interval, actions, costs, model, playhead };
}
