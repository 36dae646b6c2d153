// The law of the first token of a round, for two laws p and q over a few tokens: what accepted
// guesses give it and what is drawn after a rejection. Exact, by arithmetic; nothing is sampled.
// arXiv 2211.17192, appendix A.1. The wrong ways are those of specviz/lossless/variants.py.

const sum = (values) => values.reduce((total, value) => total + value, 0);
const scaled = (values, factor) => values.map((value) => value * factor);
const normalised = (values) => scaled(values, 1 / sum(values));

// min(1, p/q) of each token: how likely a guess of it is accepted.
export function acceptances(p, q) {
  return p.map((value, i) => (q[i] > 0 ? Math.min(1, value / q[i]) : 1));
}

// The share of guesses that is accepted, the sum of min(p, q).
export function overlap(p, q) {
  return sum(p.map((value, i) => Math.min(value, q[i])));
}

// max(p - q, 0), not normalised; p itself where nothing is left, as the program does.
function beyond(p, q) {
  const rest = p.map((value, i) => Math.max(value - q[i], 0));
  return sum(rest) > 0 ? rest : p;
}

// max(p - q, 0) scaled to 1.
export function residual(p, q) {
  return normalised(beyond(p, q));
}

function softmax(values) {
  return normalised(values.map((value) => Math.exp(value)));
}

function likeliest(q) {
  const best = q.indexOf(Math.max(...q));
  return q.map((_, i) => (i === best ? 1 : 0));
}

// Guesses drawn from `drawn`, tested against p and q, and a rejection redrawn from `rest`.
function round(p, q, drawn, rest) {
  const kept = acceptances(p, q).map((accepted, i) => drawn[i] * accepted);
  return { kept, redrawn: scaled(rest, 1 - sum(kept)) };
}

// Two guesses, both from q. The first stays if either passes its test.
function keptBehind(p, q) {
  const passes = overlap(p, q);
  const accepted = acceptances(p, q);
  const kept = q.map((value, i) => value * (accepted[i] + (1 - accepted[i]) * passes));
  return { kept, redrawn: scaled(residual(p, q), (1 - passes) ** 2) };
}

const VARIANTS = {
  right: (p, q) => round(p, q, q, residual(p, q)),
  "argmax draft": (p, q) => round(p, q, likeliest(q), residual(p, q)),
  "softmaxed residual": (p, q) => round(p, q, q, softmax(beyond(p, q))),
  "no residual": (p, q) => round(p, q, q, p),
  "filters on one side": (p, q) =>
    round(p, q, normalised(q.map((value) => value * value)), residual(p, q)),
  "kept behind a rejection": keptBehind,
};

export const VARIANT_NAMES = Object.keys(VARIANTS);

// {kept, redrawn, written, gap}: the two parts of each token's probability, their sum, and how far
// the sum is from p at most.
export function firstTokenLaw(name, p, q) {
  const { kept, redrawn } = VARIANTS[name](p, q);
  const written = kept.map((value, i) => value + redrawn[i]);
  const gap = Math.max(...written.map((value, i) => Math.abs(value - p[i])));
  return { kept, redrawn, written, gap };
}

// The law with one probability moved to `value`; the others share the rest as they did before.
export function moved(law, index, value) {
  const wanted = Math.min(1, Math.max(0, value));
  const others = 1 - law[index];
  const even = (1 - wanted) / (law.length - 1);
  return law.map((old, i) => {
    if (i === index) return wanted;
    return others > 1e-9 ? (old * (1 - wanted)) / others : even;
  });
}
