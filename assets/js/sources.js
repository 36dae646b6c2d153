// Where a guess came from, in words. A drafter this page does not know is called the drafter.

const DRAFT = {
  subject: "the draft",
  same: "the draft guessed the same",
  other: "the draft guessed ",
  who: "a small and quick model",
};
const SOURCES = {
  "draft model": DRAFT,
  "feature draft": { ...DRAFT, who: "a small head on the target's own inner state" },
  "prompt lookup": {
    subject: "the copied guess",
    same: "the copied guess is the same",
    other: "the copied guess is ",
    who: "a search for the last words earlier in the text",
  },
  retrieval: {
    subject: "the store",
    same: "the guess from the store is the same",
    other: "the guess from the store is ",
    who: "a search for the last words in text the target wrote before",
  },
};
const UNKNOWN = {
  subject: "the drafter",
  same: "the drafter guessed the same",
  other: "the drafter guessed ",
  who: "a cheap way of guessing",
};

export function sourceWords(token) {
  return Object.hasOwn(SOURCES, token.source) ? SOURCES[token.source] : UNKNOWN;
}

// The first guess of the round from the same source: it alone carries the passage of a store.
export function firstOfSource(round, token) {
  return round.tokens.find((other) => other.source === token.source) ?? token;
}

// The places a copied guess came from, in prompt and output together: the n-gram that matched
// stands at start..end - 1, the token it gave at `from`. Null for a token that was not copied.
export function sourceOf({ token, round }) {
  if (typeof token.copied_from !== "number") return null;
  const end = firstOfSource(round, token).copied_from;
  return { from: token.copied_from, start: end - (token.matched ?? 0), end };
}

// The places of the n-gram that was looked up: the last tokens before the round.
export function lookedUp({ token, round }, promptLength) {
  const end = promptLength + round.position;
  return { start: Math.max(0, end - (token.matched ?? 0)), end };
}
