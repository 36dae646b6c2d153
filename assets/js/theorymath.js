// The papers' formulas, as in specviz/theory.py; a test compares the two. alpha: acceptance rate of
// a tested token; gamma: tokens drafted in a round; c: draft step time / target step time;
// v(n) = 1 + slope * (n - 1): time of a target call on n tokens / on one.

export const LONGEST_DRAFT = 32;

// Equation 1 of arXiv 2211.17192.
export function expectedTokens(alpha, gamma) {
  return alpha === 1 ? gamma + 1 : (1 - alpha ** (gamma + 1)) / (1 - alpha);
}

// Theorem 3.8 of arXiv 2211.17192, which is slope 0.
export function speedup(alpha, gamma, c, slope = 0) {
  return expectedTokens(alpha, gamma) / (gamma * c + 1 + slope * gamma);
}

export function bestGamma(alpha, c, slope = 0) {
  let best = 0;
  for (let gamma = 1; gamma <= LONGEST_DRAFT; gamma += 1) {
    if (speedup(alpha, gamma, c, slope) > speedup(alpha, best, c, slope)) best = gamma;
  }
  return best;
}

// The acceptance rate from which drafting gamma tokens pays, null where none does.
export function breakEven(gamma, c, slope = 0) {
  if (speedup(1, gamma, c, slope) < 1) return null;
  let low = 0;
  let high = 1;
  for (let i = 0; i < 24; i += 1) {
    const middle = (low + high) / 2;
    if (speedup(middle, gamma, c, slope) >= 1) high = middle;
    else low = middle;
  }
  return high;
}
