// Guessing verdicts: which decision is asked next, what was guessed, and the score. The playhead
// cannot pass a question, and the page sees the run only up to it (predictveil.js).

import { isComplete, leadLane } from "./model.js";
import { stepOfQuestion, veiled } from "./predictveil.js";

// `show` brings the page to what `view` gives; `rebuild` makes it draw the text anew.
export function createPredict({ record, model, playhead, show, rebuild }) {
  const state = fresh();

  function fresh() {
    return { on: false, question: null, next: null, last: null, toldAt: null, right: 0, asked: 0 };
  }

  const lead = () => leadLane(record);

  function start() {
    if (!lead()) return;
    const from = playhead.atEnd() ? { round: 0, token: 0 } : whereSeen();
    Object.assign(state, fresh(), { on: true, next: from });
    playhead.pause();
    show();
    rebuild();
    toQuestion();
  }

  // Verdicts that have been on screen are not asked any more.
  function whereSeen() {
    const { full, steps } = playhead.position(lead());
    const drafted = lead().rounds[full]?.drafted ?? 0;
    return { round: full, token: Math.max(0, steps - drafted - 1) };
  }

  // Whether there was anything to stop.
  function stop() {
    const was = state.on;
    Object.assign(state, fresh());
    show();
    return was;
  }

  function find() {
    if (state.on && !state.question) state.question = questionFrom(lead(), state.next);
  }

  function toQuestion() {
    state.toldAt = null;
    if (state.question) playhead.goToStep(stepOfQuestion(lead(), state.question));
    else playhead.seek(record.seconds);
  }

  // Keeps the playhead before the question, whatever moved it. It may rest where the last guess
  // was judged, even if the next question comes right there.
  function hold() {
    if (!state.question || isTold()) return;
    const { full, steps } = playhead.position(leadLane(model));
    const { round, token } = state.question;
    const there = steps >= lead().rounds[round].drafted + 1 + token;
    const past = full > round || (full === round && there);
    if (past || playhead.playing || playhead.following) toQuestion();
  }

  const isTold = () => state.toldAt !== null && playhead.step === state.toldAt;

  function isAsking() {
    if (state.question === null || isTold()) return false;
    return playhead.step === stepOfQuestion(lead(), state.question);
  }

  // `kept` is what the audience says: kept or thrown away. Returns whether it was right.
  function answer(kept) {
    if (!isAsking()) return null;
    const asked = state.question;
    const token = lead().rounds[asked.round].tokens[asked.token];
    const right = (token.fate === "accepted") === kept;
    Object.assign(state, { question: null, next: { ...asked, token: asked.token + 1 } });
    Object.assign(state, { last: { ...asked, kept, right }, asked: state.asked + 1 });
    state.right += right ? 1 : 0;
    find();
    show();
    state.toldAt = stepOfQuestion(lead(), asked) + 1;
    playhead.goToStep(state.toldAt);
    return right;
  }

  return {
    state,
    lane: () => lead().name,
    hasMore: () => !isComplete(record),
    start,
    stop,
    hold,
    answer,
    isAsking,
    toQuestion,
    reset: () => Object.assign(state, fresh()),
    // The run as it may be shown now. A live run may have come to its next question.
    view() {
      find();
      return state.question ? veiled(record, state.question) : record;
    },
    // The question as a decision of the run that is shown, or null.
    decision() {
      if (!isAsking()) return null;
      const { round, token } = state.question;
      return { round: leadLane(model).rounds[round], kind: "question", token };
    },
  };
}

// The first tested guess at or behind this place, or null.
export function questionFrom(lane, { round, token }) {
  for (let r = round; r < lane.rounds.length; r += 1) {
    const first = r === round ? token : 0;
    if (first < lane.rounds[r].tested) return { round: r, token: first };
  }
  return null;
}
