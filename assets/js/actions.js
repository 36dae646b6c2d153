// What can be done with the stage, by button or by key. Each action asks for a new frame.

import { RATES } from "./clock.js";
import { isComplete, leadLane } from "./model.js";

// `stage` offers {root, model, playhead, selection, parts, predict} and the functions isMoving,
// resume, refresh and noteSeek.
export function createActions(stage) {
  const moves = { ...moving(stage), ...looking(stage), ...explaining(stage) };
  const actions = { refresh: stage.refresh };
  for (const [name, move] of Object.entries(moves)) {
    actions[name] = (...values) => {
      const done = move(...values);
      stage.predict.hold();
      stage.refresh();
      return done;
    };
  }
  return actions;
}

function moving(stage) {
  const { model, playhead } = stage;
  const nextRate = (by) => RATES[RATES.indexOf(playhead.rate) + by];
  const setRate = (rate) => {
    if (rate) playhead.rate = rate;
  };

  function toEnd() {
    playhead.pause();
    playhead.goTo(model.seconds);
  }

  return {
    toggle: () => (stage.isMoving() ? playhead.pause() : stage.resume()),
    start() {
      playhead.pause();
      playhead.goTo(0);
    },
    end: () => (isComplete(model) ? toEnd() : playhead.follow()),
    previous: () => playhead.roundBy(-1),
    next: () => playhead.roundBy(1),
    previousStep: () => playhead.stepBy(-1),
    nextStep: () => playhead.stepBy(1),
    goToRound(index) {
      const lead = leadLane(model);
      if (lead?.rounds.length)
        playhead.goToStep(lead.stepStarts[Math.min(index, lead.rounds.length - 1)]);
    },
    seek(time) {
      stage.noteSeek();
      playhead.seek(time);
    },
    follow: () => (isComplete(model) ? false : playhead.follow()),
    setRate,
    slower: () => setRate(nextRate(-1)),
    faster: () => setRate(nextRate(1)),
    realTime() {
      setRate(1);
      if (!stage.isMoving()) stage.resume();
    },
  };
}

function looking({ parts, selection, predict, root }) {
  return {
    unpin: () => selection.unpin(),
    jump: () => parts.jump.open(),
    thrown: () => root.querySelector(".sv-thrown").click(),
    zoom: () => root.querySelector(".sv-zoom").click(),
    whatIf: () => parts.inspector.toggleWhatIf(),
    present: () => parts.presentation.toggle(),
    sheet: () => parts.presentation.toggleSheet(),
    // The innermost thing first. False where there was nothing to leave.
    escape: () =>
      parts.walk.stop() || selection.unpin() || predict.stop() || parts.presentation.leave(),
  };
}

function explaining({ model, parts, predict, selection }) {
  return {
    narration: () => parts.narration.toggle(),
    level: (number) => parts.narration.setLevel(number),
    walk() {
      predict.stop();
      parts.walk.toggle();
    },
    predict() {
      parts.walk.stop();
      selection.clear();
      if (!predict.stop() && model.start) predict.start();
    },
    say(kept) {
      if (!predict.isAsking()) return false;
      selection.clear();
      return predict.answer(kept) !== null;
    },
    nextQuestion: () => predict.toQuestion(),
  };
}
