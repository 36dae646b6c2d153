// Going to a round by its number: a small dialog, reached by a button that says where one is.

import { el, setAttr, setText } from "./dom.js";
import { leadLane } from "./model.js";

export function createJump(root, { model, playhead, actions }) {
  const button = root.querySelector(".sv-jump-button");
  const dialog = root.querySelector(".sv-jump");
  const input = el("input", {
    type: "number",
    min: 1,
    step: 1,
    required: true,
    "aria-label": "Round",
  });
  const limit = el("span", {});
  const form = el(
    "form",
    { method: "dialog" },
    el("label", {}, "Go to round ", input),
    limit,
    el("button", { class: "sv-go" }, "Go"),
  );
  dialog.append(form);
  button.addEventListener("click", open);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  form.addEventListener("submit", () => actions.goToRound(Number(input.value) - 1));

  function where() {
    const lead = leadLane(model);
    if (!lead || lead.rounds.length === 0) return null;
    const { full, steps } = playhead.position(lead);
    return {
      round: Math.min(steps > 0 ? full + 1 : full, lead.rounds.length),
      of: lead.rounds.length,
    };
  }

  function open() {
    const at = where();
    if (!at || dialog.open) return;
    setAttr(input, "max", at.of);
    input.value = Math.max(at.round, 1);
    setText(limit, " of " + at.of);
    dialog.showModal();
    input.select();
  }

  function render() {
    const at = where();
    setText(button, at ? "Round " + at.round + " / " + at.of : "Round 0 / 0");
    setAttr(button, "aria-disabled", at ? null : "true");
    setAttr(button, "title", at ? "Go to a round (J)" : "Nothing to play yet");
  }

  return { open, render };
}
