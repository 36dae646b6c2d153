// The script of an exported run: the stage, fed with the run that stands in the file.

import { setHidden, setText } from "./dom.js";
import { createStage } from "./stage.js";

const data = (id) => JSON.parse(document.getElementById(id).textContent);

// Figures stand as bare lists in the file; here they get their names back.
function linesOf({ figures, events }) {
  const named = (values) => Object.fromEntries(figures.map((name, i) => [name, values[i]]));
  return events
    .map((event) => (event.e === "round" ? { ...event, figures: named(event.figures) } : event))
    .map((event) => JSON.stringify(event) + "\n")
    .join("");
}

function head(start) {
  const note = document.querySelector(".standalone-note");
  setText(note, start.note || start.prompt);
  setHidden(note, !note.textContent);
  const dark = document.documentElement.classList;
  dark.toggle("dark", window.matchMedia("(prefers-color-scheme: dark)").matches);
  document
    .querySelector(".standalone-theme")
    .addEventListener("click", () => dark.toggle("dark"));
}

const run = data("run");
head(run.events[0]);
const stage = createStage(document.querySelector(".sv-stage"), {
  definitions: data("definitions"),
});
stage.feed(linesOf(run));
