// How numbers and token texts are written. What was not measured is an em dash.

export const DASH = "\u2014";

const known = (value) => typeof value === "number" && Number.isFinite(value);

export function times(value) {
  return known(value) ? value.toFixed(2) + "x" : DASH;
}

export function share(value) {
  return known(value) ? value.toFixed(2) : DASH;
}

export function seconds(value) {
  return known(value) ? value.toFixed(2) + " s" : DASH;
}

export function milliseconds(value) {
  if (!known(value)) return DASH;
  const ms = value * 1000;
  return (ms >= 100 ? ms.toFixed(0) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2)) + " ms";
}

export function rate(value) {
  if (!known(value)) return DASH;
  return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

export function count(value, one, many = one + "s") {
  return value + " " + (value === 1 ? one : many);
}

// A probability to two significant decimals; never rounded onto 0 or 1 when it is neither.
export function probability(value) {
  if (!known(value)) return DASH;
  if (value === 0 || value === 1) return String(value);
  if (value < 0.0001) return "<0.0001";
  if (value > 0.995) return value > 0.9995 ? ">0.999" : value.toFixed(3);
  return value >= 0.1 ? value.toFixed(2) : Number(value.toPrecision(2)).toString();
}

// A probability as a newcomer reads it: "62 in 100".
export function inHundred(value) {
  if (!known(value)) return DASH;
  if (value < 0.01) return value === 0 ? "0 in 100" : "less than 1 in 100";
  if (value > 0.99 && value < 1) return "more than 99 in 100";
  return Math.round(value * 100) + " in 100";
}

// Two numbers with as many decimals as it takes to tell them apart.
export function apart(a, b) {
  for (let digits = 2; digits < 6; digits += 1) {
    if (a.toFixed(digits) !== b.toFixed(digits)) return [a.toFixed(digits), b.toFixed(digits)];
  }
  return [probability(a), probability(b)];
}

// A token as people can see it: quoted, with its invisible characters drawn.
export function quote(text) {
  if (text === "") return "(part of a character)";
  return isolated("'" + visible(text).replace(LEADING_SPACE, "\u00a0") + "'");
}

// A sentence must not break between the quotation mark and the word.
const LEADING_SPACE = /^ (?=\S)/;

// Right-to-left text must not reorder the sentence it is quoted in.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

function isolated(text) {
  return RIGHT_TO_LEFT.test(text) ? "\u2068" + text + "\u2069" : text;
}

export function visible(text) {
  return text
    .replace(/\n/g, "\u21b5")
    .replace(/\t/g, "\u21e5")
    .replace(/[\u200b\u2060\ufeff\u00ad]/g, "\u00b7");
}

// 134515008 -> "135M".
export function parameters(value) {
  if (!known(value) || value <= 0) return "";
  if (value >= 1e9) return (value / 1e9).toFixed(value >= 1e10 ? 0 : 1) + "B";
  return (value / 1e6).toFixed(value >= 1e7 ? 0 : 1) + "M";
}
