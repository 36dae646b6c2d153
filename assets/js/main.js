// The page's way in: window.specviz.mountStage(element, options) -> {feed}.

import { createStage } from "./stage.js";

const mounted = new WeakMap();

function mountStage(element, options = {}) {
  const root = element.matches(".sv-stage") ? element : element.querySelector(".sv-stage");
  if (!root) throw new Error("mountStage: the element holds no .sv-stage; put stage.html in it");
  if (!mounted.has(root)) mounted.set(root, createStage(root, options));
  return mounted.get(root);
}

window.specviz = { ...window.specviz, mountStage };
window.dispatchEvent(new Event("specviz-ready"));
