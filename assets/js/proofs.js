// The result of a proof while it runs and after: lines of JSON in, a verdict, a table, a picture.

import { el, setHidden, setText } from "./dom.js";
import { exactView } from "./proofexact.js";
import { greedyView } from "./proofgreedy.js";
import { sampledView } from "./proofsampled.js";

const VIEWS = { exact: exactView, sampled: sampledView, greedy: greedyView };

export function mountProof(element, kind) {
  const root = element.querySelector(".proof");
  const status = el("p", { class: "proof-status", role: "status" });
  const body = el("div", { class: "proof-body" });
  root.append(status, body);
  const view = VIEWS[kind](body);
  let seen = null;
  new ResizeObserver(() => view.draw()).observe(root);

  function show(text) {
    if (text === seen) return;
    seen = text;
    const events = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
    const results = events.filter((event) => event.e === kind);
    const last = events.at(-1);
    setText(status, !last || last.e === kind ? "" : sentence(last, results, view));
    status.dataset.kind = last ? statusKind(last, results) : "note";
    setHidden(status, status.textContent === "");
    setHidden(body, results.length === 0);
    view.show(results);
  }

  return { show };
}

function sentence(last, results, view) {
  if (last.e === "error") return last.message;
  if (last.e === "status") return last.message;
  if (last.stopped) return "Stopped. What was found so far stands below.";
  return view.verdict(results);
}

function statusKind(last, results) {
  if (last.e === "error") return "failed";
  if (last.e !== "end") return "busy";
  if (last.stopped) return "note";
  return results.every((result) => result.holds) ? "holds" : "failed";
}
