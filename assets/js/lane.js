// One lane's text. Rounds are built once, when the playhead first reaches them, and shown or
// hidden after that. A chunk is a block that begins after a line break, where a block looks like
// running text: appending and scrubbing then lay out one chunk, not 1,500 tokens.

import { el } from "./dom.js";
import { COMMITTED, keyOf } from "./model.js";
import { stateAfter } from "./steps.js";
import { cutToken, showState, tokenSpan } from "./token.js";

const CHUNK = 16; // rounds a chunk has at least
const BUILD_MS = 10;
const MOST_TOKENS = 300; // shown anew in one frame: each has to be laid out

export function createLaneView(root) {
  const box = root.querySelector(".sv-text");
  const scroller = root.querySelector(".sv-scroll");
  let rounds = []; // the round spans built so far
  let newest = null; // the round the last of them shows
  let chunks = []; // {element, from, to}: rounds from..to - 1
  let shown = { full: 0, steps: 0 };
  let visible = 0;
  let lastToken = null;
  let stick = true;
  let grown = false;
  let cutDone = false;

  scroller.addEventListener("scroll", () => {
    const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    stick = below < 48;
  });

  new ResizeObserver(() => {
    if (stick) scroller.scrollTop = scroller.scrollHeight;
  }).observe(scroller);

  function reset() {
    box.replaceChildren();
    rounds = [];
    newest = null;
    chunks = [];
    shown = { full: 0, steps: 0 };
    visible = 0;
    stick = true;
    cutDone = false;
  }

  function build(round) {
    if (startsChunk(round)) {
      const element = el("span", { class: "sv-chunk" });
      chunks.push({ element, from: round.index, to: round.index });
      box.append(element);
    }
    const span = el("span", { class: "sv-round" });
    fill(span, round);
    chunks.at(-1).element.append(span);
    chunks.at(-1).to = rounds.push(span);
  }

  function fill(span, round) {
    span.replaceChildren(...round.tokens.map((token, i) => tokenSpan(token, keyOf(round, i))));
    newest = round;
    lastToken = round.tokens.at(-1) ?? null;
  }

  // While verdicts are being guessed a round is known bit by bit.
  function refill(lane) {
    const round = lane.rounds[rounds.length - 1];
    if (!round || round === newest) return;
    fill(rounds.at(-1), round);
    settle(round, null);
    if (shown.full === round.index) shown = { full: round.index, steps: 0 };
  }

  function startsChunk(round) {
    const chunk = chunks.at(-1);
    if (!chunk) return true;
    return (
      round.index - chunk.from >= CHUNK &&
      COMMITTED.has(lastToken?.fate) &&
      lastToken.text.endsWith("\n")
    );
  }

  function settle(round, steps) {
    const span = rounds[round.index];
    round.tokens.forEach((token, i) => {
      showState(span.children[i], steps === null ? token.fate : stateAfter(round, i, steps));
    });
  }

  // Returns false when there was more to build or to show than one frame allows.
  function render(lane, { full, steps }) {
    const need = steps > 0 ? full + 1 : full;
    const limit = performance.now() + BUILD_MS;
    refill(lane);
    while (rounds.length < need) {
      if (performance.now() > limit) break;
      build(lane.rounds[rounds.length]);
      settle(lane.rounds[rounds.length - 1], null);
    }
    const reached = within(lane, Math.min(full, rounds.length));
    const inside = rounds.length > full && reached === full ? steps : 0;
    if (reached !== shown.full || inside !== shown.steps) show(lane, reached, inside);
    if (lane.end && !cutDone && rounds.length === lane.rounds.length) cutBehindStop(lane);
    return rounds.length >= need && reached === full;
  }

  // As many rounds towards `count` as one frame can lay out.
  function within(lane, count) {
    let reached = Math.min(visible, count);
    for (let tokens = 0; reached < count && tokens < MOST_TOKENS; reached += 1)
      tokens += lane.rounds[reached].tokens.length;
    return reached;
  }

  function show(lane, full, steps) {
    if (shown.steps > 0) settle(lane.rounds[shown.full], null);
    reveal(steps > 0 ? full + 1 : full);
    if (steps > 0) settle(lane.rounds[full], steps);
    shown = { full, steps };
    grown = true;
  }

  // Reading a height makes the browser lay out at once: last, when all of a frame is written.
  function toNewest() {
    if (grown && stick) scroller.scrollTop = scroller.scrollHeight;
    grown = false;
  }

  // Within the chunk that the playhead is in single rounds are hidden; beyond it whole chunks.
  function reveal(count) {
    for (const chunk of chunks) {
      chunk.element.classList.toggle("sv-away", chunk.from >= count);
      const touched = chunk.to > Math.min(count, visible) && chunk.from < Math.max(count, visible);
      if (!touched || chunk.from >= count) continue;
      for (let i = chunk.from; i < chunk.to; i += 1) rounds[i].hidden = i >= count;
    }
    visible = count;
  }

  function cutBehindStop(lane) {
    cutDone = true;
    let left = lane.end.text_end;
    if (left === null || left === undefined) return;
    for (const round of lane.rounds) {
      round.tokens.forEach((token, i) => {
        if (!COMMITTED.has(token.fate)) return;
        const length = Array.from(token.text).length;
        if (left < length) cutToken(rounds[round.index].children[i], token.text, left);
        left = Math.max(0, left - length);
      });
    }
  }

  return {
    box,
    reset,
    render,
    toNewest,
    span: (round, i) => rounds[round]?.children[i] ?? null,
    roundSpan: (round) => rounds[round] ?? null,
    shownRounds: () => visible,
  };
}

// The text the lane shows at this position, exactly as generated.
export function textAt(lane, { full, steps }) {
  let text = "";
  for (let r = 0; r < full; r += 1) text += committedText(lane.rounds[r], null);
  if (steps > 0) text += committedText(lane.rounds[full], steps);
  const end = lane.end?.text_end;
  return end === null || end === undefined ? text : Array.from(text).slice(0, end).join("");
}

function committedText(round, steps) {
  return round.tokens
    .filter((token, i) => COMMITTED.has(steps === null ? token.fate : stateAfter(round, i, steps)))
    .map((token) => token.text)
    .join("");
}
