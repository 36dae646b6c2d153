// The guided walk on the page: the offer on a first visit, and the card with its stops.

import { el, reducedMotion, setAttr, setHidden } from "./dom.js";
import { isComplete, isReplay } from "./model.js";
import { walkRound, walkStops } from "./walk.js";
import { PICTURES } from "./walkpictures.js";

const OFFERED = "walk";

export function createWalk(root, { model, playhead, selection, memory, actions, announce }) {
  const offer = root.querySelector(".sv-offer");
  const card = root.querySelector(".sv-walk");
  let stops = [];
  let at = -1;
  let round = null;
  offer.append(
    el("p", {}, "New here? A walk of two minutes through one recorded round shows how it works."),
    el(
      "button",
      { type: "button", class: "sv-start-walk", onclick: () => actions.walk() },
      "Start the walk",
    ),
    el(
      "button",
      { type: "button", class: "sv-quiet", onclick: () => setHidden(offer, true) },
      "No, thanks",
    ),
  );

  // Offered once, on the first visit, over a run that is all there.
  function offerOnce() {
    if (memory.get(OFFERED) !== null || !isReplay(model) || !isComplete(model)) return;
    if (!walkRound(model)) return;
    memory.set(OFFERED, "offered");
    setHidden(offer, false);
  }

  const isOn = () => at >= 0;

  function start() {
    round = walkRound(model);
    if (!round) return;
    setHidden(offer, true);
    memory.set(OFFERED, "seen");
    stops = walkStops(model, round);
    goTo(0);
  }

  function stop() {
    if (!isOn()) return false;
    at = -1;
    selection.unpin();
    setHidden(card, true);
    setAttr(root, "data-walk", null);
    return true;
  }

  function goTo(index) {
    if (index >= stops.length) {
      stop();
      root.focus({ preventScroll: true });
      actions.refresh();
      return;
    }
    at = Math.max(index, 0);
    const now = stops[at];
    playhead.goToStep(now.step);
    selection.pin(now.pin);
    setAttr(root, "data-walk", now.part);
    show(now);
    actions.refresh();
  }

  function show(now) {
    const picture = now.picture ? PICTURES[now.picture](model, round) : null;
    const last = at === stops.length - 1;
    const next = button(last ? "Done" : "Next", "sv-walk-next", () => goTo(at + 1));
    const back = at > 0 ? button("Back", "sv-quiet", () => goTo(at - 1)) : null;
    const place = el("span", { class: "sv-panel-place" }, at + 1 + " of " + stops.length);
    card.replaceChildren(
      el(
        "header",
        { class: "sv-front-head" },
        el("h3", {}, now.title),
        button("Leave", "sv-quiet", () => actions.walk()),
      ),
      ...now.lines.map((line) => el("p", { class: "sv-said" }, line)),
      ...(picture ? [picture] : []),
      el("footer", { class: "sv-walk-foot" }, ...[place, back, next].filter(Boolean)),
    );
    setHidden(card, false);
    next.focus({ preventScroll: true });
    card.scrollIntoView({ block: "nearest", behavior: reducedMotion.matches ? "auto" : "smooth" });
    announce(now.title + ". " + now.lines.join(" "));
  }

  return {
    offerOnce,
    isOn,
    stop,
    toggle: () => (isOn() ? stop() : start()),
    by: (count) => isOn() && goTo(at + count),
  };
}

function button(text, kind, onclick) {
  return el("button", { type: "button", class: kind, onclick }, text);
}
