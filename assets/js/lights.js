// The chosen token, where it was copied from, its round on the axis and its points light up.

import { sourceKeys } from "./copied.js";

export function createLights({ model, selection, find }, { stream, plots }) {
  let lit = null;
  let lights = []; // [key, class] of the tokens that are lit

  function put(on) {
    for (const [key, name] of lights) stream.light(key, name, on);
  }

  return function light() {
    const key = selection.active();
    if (key === lit) return;
    put(false);
    const found = key ? find(key) : null;
    lights = found ? [[key, "sv-lit"], ...sourceKeys(found, model)] : [];
    put(true);
    plots.mark(found && !found.round.veiled ? found.round : null);
    lit = key;
  };
}
