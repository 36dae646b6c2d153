// The page's way in: window.specviz.mountStage(element, options) -> {feed, append, ...}, and
// createFollower(stage, read), which keeps a stage fed while a run goes on.

import { stopStrayFrames } from "./calm.js";
import { mountDiagnosis } from "./diagnosis.js";
import { createFollower } from "./follow.js";
import { mountLaw } from "./lossless.js";
import { mountProof } from "./proofs.js";
import { keepPass, showPass } from "./returning.js";
import { createStage } from "./stage.js";
import { mountSweep } from "./sweep.js";
import { mountTheory } from "./theory.js";
import { copyLink, mountTraces, savePicture } from "./traces.js";

const mounted = new WeakMap();

function mountStage(element, options = {}) {
  const root = element.matches(".sv-stage") ? element : element.querySelector(".sv-stage");
  if (!root) throw new Error("mountStage: the element holds no .sv-stage; put stage.html in it");
  if (!mounted.has(root)) mounted.set(root, createStage(root, options));
  return mounted.get(root);
}

const tabs = { mountDiagnosis, mountSweep, mountTheory, mountLaw, mountProof, mountTraces };
const others = { createFollower, keepPass, showPass, stopStrayFrames, savePicture, copyLink };
window.specviz = { ...window.specviz, mountStage, ...tabs, ...others };
window.dispatchEvent(new Event("specviz-ready"));
