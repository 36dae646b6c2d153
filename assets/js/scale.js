// From values to pixels, and the round numbers an axis is marked with.

// A function that maps the stretch `from`..`to` onto `start`..`end`.
export function linear([from, to], [start, end]) {
  const factor = (end - start) / (to - from);
  return (value) => start + (value - from) * factor;
}

// The next of 1, 2, 5, 10 times a power of ten.
export function niceStep(rough) {
  return next(rough, [1, 2, 5, 10]);
}

// A round number that is not smaller: axes grow in these steps, so that they stand still between.
export function niceCeiling(value) {
  return next(value, [1, 1.5, 2, 3, 5, 7, 10]);
}

function next(value, factors) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * factors.find((factor) => factor * power >= value * (1 - 1e-9));
}

// Round values within the range, about `most` of them, each with the text to write there.
export function ticks([from, to], most, { whole = false } = {}) {
  const step = Math.max(niceStep((to - from) / most), whole ? 1 : 0);
  const decimals = step >= 1 ? 0 : Math.ceil(-Math.log10(step) - 1e-9);
  const found = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to * (1 + 1e-9); k += 1) {
    found.push({ value: k * step, text: (k * step).toFixed(decimals) });
  }
  return found;
}
