// The list of traces: the gallery, those kept in this session, and what can be done with the ones
// that are shown.

import { el, setHidden, setText } from "./dom.js";
import { share, times } from "./format.js";
import { savePng } from "./save.js";

const FIGURES = [
  ["speedup", "speedup", times],
  ["end_to_end_speedup", "end to end", times],
  ["tar", "TAR", share],
  ["alpha", "alpha", share],
  ["tokens_per_target_call", "tokens per target call", share],
  ["cost_ratio", "c", share],
  ["verify_ratio", "v", share],
  ["predicted_speedup", "predicted", times],
];
const FORMATS = [
  ["json", "Trace", "The trace itself, to be opened again"],
  ["html", "HTML", "One file that replays the run in any browser, without a network"],
  ["svg", "SVG", "A picture of the token stream"],
  ["csv", "CSV", "A table of the tokens"],
];

// `act(event, {do, id})` asks the page to do something; `events` are the names it knows.
export function mountTraces(element, events, act) {
  const root = element.querySelector(".traces");
  const message = el("p", { class: "traces-message", role: "status" });
  const shown = el("div", { class: "traces-shown" });
  const kept = el("ul", { class: "traces-list" });
  const keptHead = el("h3", {}, "In this session");
  const gallery = el("ul", { class: "traces-list" });
  root.append(message, shown, keptHead, kept, el("h3", {}, "Gallery"), gallery);

  const ask = (event, name, id) => () => act(event, { do: name, id });

  function show(told) {
    setText(message, told.message);
    setHidden(message, told.message === "");
    shown.replaceChildren(...shownPart(told));
    setHidden(keptHead, told.kept.length === 0);
    kept.replaceChildren(...told.kept.map((entry) => row(told, entry, true)));
    gallery.replaceChildren(...told.gallery.map((entry) => row(told, entry, false)));
  }

  function shownPart(told) {
    const parts = told.shown.map((trace, i) => takeAlong(trace, told.right ? i + 1 : 0));
    if (told.right) parts.unshift(comparison(told));
    return parts;
  }

  function takeAlong(trace, number) {
    const name = (number ? number + ". " : "") + trace.title;
    const buttons = FORMATS.map(([format, text, title]) =>
      button(text, title, ask(events.take, format, trace.id)),
    );
    const picture = button("PNG", "The same picture as pixels", ask(events.draw, "png", trace.id));
    buttons.splice(3, 0, picture);
    if (trace.link) buttons.push(linkButton(trace.link));
    return el(
      "section",
      { class: "traces-card" },
      el("h4", {}, name),
      trace.note ? el("p", { class: "traces-note" }, trace.note) : null,
      el("div", { class: "traces-take", role: "group", "aria-label": "Take along: " + trace.title }, ...buttons),
    );
  }

  function comparison(told) {
    const words = told.same_prompt ? "Both ran the same prompt." : "The two prompts differ.";
    const rows = FIGURES.map(([name, label, format]) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, label),
        ...told.shown.map((trace) => el("td", {}, format(trace.figures[name]))),
      ),
    );
    return el(
      "section",
      { class: "traces-card" },
      el("h4", {}, "Two runs compared"),
      el("p", { class: "traces-note" }, words),
      el(
        "table",
        { class: "traces-figures" },
        el("thead", {}, el("tr", {}, ...["", "1", "2"].map((text) => el("th", { scope: "col" }, text)))),
        el("tbody", {}, ...rows),
      ),
      el(
        "div",
        { class: "traces-take" },
        button("Play both", "Both from the start, at the speed that was recorded", playBoth),
        button("End comparison", "Back to one run", ask(events.show, "close", told.right)),
      ),
    );
  }

  function row(told, { id, title, look }, own) {
    const current = id === told.left || id === told.right;
    const actions = [button("Compare", "Beside the run that is shown", ask(events.show, "right", id))];
    if (own) actions.push(button("Delete", "From this session", ask(events.show, "delete", id)));
    if (id === told.left) actions.shift();
    return el(
      "li",
      { class: "traces-row", "data-shown": String(current) },
      el(
        "button",
        { type: "button", class: "traces-open", "aria-pressed": String(current), onclick: ask(events.show, "left", id) },
        el("span", { class: "traces-title" }, title),
        look ? el("span", { class: "traces-look" }, look) : null,
      ),
      el("span", { class: "traces-actions" }, ...actions),
    );
  }

  return { show };
}

function button(text, title, onclick) {
  return el("button", { type: "button", class: "traces-button", title, onclick }, text);
}

// The address alone brings prompt and settings back.
function linkButton(query) {
  return button("Link", "Copy a link that opens Explore with this prompt and settings", () => copyLink(query));
}

// Copies a link to this page, which the address bar then holds as well: where the clipboard is out
// of reach, it can be copied from there.
export function copyLink(query) {
  if (!query) return;
  const link = location.origin + location.pathname + "?" + query;
  history.replaceState(history.state, "", link);
  navigator.clipboard?.writeText(link).catch(() => {});
}

function playBoth() {
  for (const root of document.querySelectorAll("#traces-stages .sv-stage")) {
    const { actions } = window.specviz.mountStage(root);
    actions.start();
    actions.toggle();
  }
}

// A picture the page has drawn, as a file. `svg` is text of our own making, read as inert XML.
export function savePicture({ name, svg }) {
  if (!svg) return;
  const drawing = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  savePng(drawing, name);
}
