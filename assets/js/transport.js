// Play, pause, step, scrub. The same bar for recorded and live runs; pausing a live run means
// not following it any more, and "Catch up" goes back to its head.

import { el, setAttr, setHidden, setText } from "./dom.js";
import { RATES } from "./clock.js";
import { leadLane } from "./model.js";

export function createTransport(root, { model, playhead, actions, predict }) {
  const bar = root.querySelector(".sv-transport");
  const scrubber = bar.querySelector(".sv-scrubber");
  const time = bar.querySelector(".sv-time");
  const speed = bar.querySelector(".sv-speed");
  const catchUp = bar.querySelector(".sv-catch");
  const buttons = new Map([...bar.querySelectorAll("[data-do]")].map((b) => [b.dataset.do, b]));

  for (const [name, button] of buttons) button.addEventListener("click", () => actions[name]());
  catchUp.addEventListener("click", () => actions.follow());
  scrubber.addEventListener("input", () => actions.seek((scrubber.value / 1000) * model.seconds));
  for (const rate of RATES) {
    speed.append(el("option", { value: rate }, rate === 1 ? "1x, real time" : rate + "x"));
  }
  speed.value = "1";
  speed.addEventListener("change", () => actions.setRate(Number(speed.value)));

  function render(frame) {
    const moving = frame.moving;
    const play = buttons.get("toggle");
    const none = model.seconds === 0;
    play.classList.toggle("sv-on", moving);
    setAttr(play, "aria-label", moving ? "Pause" : "Play");
    for (const [name, button] of buttons) showUse(button, none, isSpent(name, frame));
    scrubber.disabled = none;
    const share = none ? 0 : playhead.time / model.seconds;
    const value = String(Math.round(share * 1000));
    if (scrubber.value !== value) scrubber.value = value;
    scrubber.style.setProperty("--sv-done", (share * 100).toFixed(2) + "%");
    setText(time, playhead.time.toFixed(2) + " / " + model.seconds.toFixed(2) + " s");
    setAttr(scrubber, "aria-valuetext", spoken(model, playhead));
    if (speed.value !== String(playhead.rate)) speed.value = String(playhead.rate);
    setHidden(catchUp, playhead.following || frame.complete || none || predict.state.on);
  }

  return { render };
}

// Without a run nothing can be used, and each button says why. aria-disabled keeps it in reach of
// the keyboard. A button with nowhere to go is dimmed only: pressing it does no harm.
function showUse(button, none, spent) {
  if (!button.dataset.title) button.dataset.title = button.title;
  setAttr(button, "aria-disabled", none ? "true" : null);
  setAttr(button, "title", none ? "Nothing to play yet" : button.dataset.title);
  button.classList.toggle("sv-spent", spent);
}

function isSpent(name, frame) {
  if (name === "start" || name.startsWith("previous")) return frame.atStart;
  return (name.startsWith("next") || name === "end") && frame.atEnd;
}

function spoken(model, playhead) {
  const lead = leadLane(model);
  if (!lead) return "no run yet";
  const { full } = playhead.position(lead);
  return (
    playhead.time.toFixed(2) +
    " of " +
    model.seconds.toFixed(2) +
    " seconds, round " +
    full +
    " of " +
    lead.rounds.length
  );
}
