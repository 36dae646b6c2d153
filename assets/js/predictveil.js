// What may be seen of a run while a verdict is still to be guessed. The page is given a run that
// ends at the question: no part of it, whatever it draws, knows more than the audience does.

import { leadLane } from "./model.js";
import { isGreedy } from "./words.js";

const LISTED = 10; // candidates a list holds; one more would be there for the sake of the verdict

// `question` is {round, token}: the guess of the lead lane whose verdict comes next.
export function veiled(record, question) {
  const lead = leadLane(record);
  const now = lead.rounds[question.round];
  const known = record.ordered.indexOf(now); // what arrived before the round in question
  const masked = maskedRound(now, question.token, record.start.settings);
  const lanes = {};
  for (const lane of Object.values(record.lanes))
    lanes[lane.name] =
      lane === lead
        ? leadUpTo(lead, question, masked)
        : otherUpTo(lane, record.ordered.slice(0, known), masked.position + masked.committed);
  return {
    ...record,
    veiled: true,
    done: null,
    lanes,
    ordered: record.ordered.slice(0, known),
    settledAt: record.settledAt.slice(0, known),
    seconds: Math.max(...Object.values(lanes).map((lane) => lane.seconds)),
  };
}

// Decisions of the lead lane that are over when the question is asked.
export function stepOfQuestion(lane, { round, token }) {
  return lane.stepStarts[round] + lane.rounds[round].drafted + 1 + token;
}

function leadUpTo(lead, question, masked) {
  return {
    ...lead,
    rounds: [...lead.rounds.slice(0, question.round), masked],
    ends: [...lead.ends.slice(0, question.round), Infinity],
    stepStarts: lead.stepStarts.slice(0, question.round + 1),
    steps: stepOfQuestion(lead, question) + 1,
    seconds: masked.end,
    tokens: masked.position + masked.committed,
    end: null,
  };
}

// The other lane, no further than the text already known: at temperature 0 it writes the same.
function otherUpTo(lane, arrived, tokens) {
  const seen = arrived.filter((round) => round.lane === lane.name);
  const rounds = seen.filter((round) => round.position + round.committed <= tokens);
  const last = rounds.at(-1);
  return {
    ...lane,
    rounds,
    ends: lane.ends.slice(0, rounds.length),
    stepStarts: lane.stepStarts.slice(0, rounds.length),
    steps: lane.stepStarts[rounds.length] ?? lane.steps,
    seconds: last?.end ?? 0,
    tokens: last ? last.position + last.committed : 0,
    end: null,
  };
}

function maskedRound(round, token, settings) {
  const tokens = round.tokens.slice(0, round.drafted);
  return {
    ...round,
    tokens: tokens.map((one, i) =>
      i < token ? one : i === token ? asked(one, settings) : guess(one),
    ),
    tested: token,
    accepted: token,
    committed: token,
    end: round.verifyEnd,
    figures: {},
    veiled: true,
  };
}

const GUESSED = [
  "id",
  "text",
  "label",
  "source",
  "parent",
  "q",
  "copied_from",
  "matched",
  "passage",
];

function guess(token) {
  const entries = GUESSED.filter((name) => name in token).map((name) => [name, token[name]]);
  return { ...Object.fromEntries(entries), fate: "drafting" };
}

// With sampling p and q are shown, and chance decides. At temperature 0 p alone decides.
function asked(token, settings) {
  const shown = { ...guess(token), q_top: token.q_top };
  if (isGreedy(settings)) return shown;
  return { ...shown, p: token.p, p_top: listed(token.p_top ?? [], token.id) };
}

function listed(rows, own) {
  const rank = [...rows].sort((a, b) => b[2] - a[2]).slice(0, LISTED);
  return rows.filter((row) => rank.includes(row) || row[0] === own);
}
