// Presentation mode: the stream, the headline and the inspector, large, over everything else.

import { fillSheet } from "./keys.js";

export function createPresentation(root, { actions }) {
  const sheet = fillSheet(root.querySelector(".sv-sheet"));
  const isOn = () => root.classList.contains("sv-present");

  // The top layer is above whatever the page around the stage does with stacking.
  function enter() {
    root.classList.add("sv-present");
    root.setAttribute("popover", "manual");
    root.showPopover();
    root.focus();
    actions.refresh();
  }

  function leave() {
    root.hidePopover();
    root.removeAttribute("popover");
    root.classList.remove("sv-present");
    root.focus();
    actions.refresh();
  }

  function toggle() {
    if (isOn()) leave();
    else enter();
  }

  function toggleSheet() {
    if (sheet.open) return sheet.close();
    sheet.showModal();
  }

  root.querySelector(".sv-present-button").addEventListener("click", toggle);
  root.querySelector(".sv-sheet-button").addEventListener("click", toggleSheet);

  return {
    toggle,
    toggleSheet,
    leave() {
      const was = isOn();
      if (was) leave();
      return was;
    },
  };
}
