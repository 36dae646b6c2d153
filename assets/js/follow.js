// Following a live run: the page asks for what is new when it can afford to show it, so that a slow
// page is never flooded and a run is never slowed down by its own display.

const RETRIES = 5;
const LOST =
  "The server of this page does not answer any more. What has arrived is kept. Reload the page" +
  " to run again.";

const FAILED = JSON.stringify({ e: "error", message: LOST }) + "\n";

// `read({ticket, since})` gives {lines, next, resting}. The function returned takes the stage's
// value: a recorded run as lines, or one line that names the live run to follow.
export function createFollower(stage, read) {
  let run = null; // {ticket, since}: what is followed, and how far it has been read

  return function show(value) {
    const ticket = ticketIn(value);
    if (ticket === null) {
      run = null;
      stage.feed(value);
    } else {
      run = { ticket, since: run?.ticket === ticket ? run.since : 0 };
      follow(run);
    }
  };

  async function follow(mine) {
    let misses = 0;
    while (run === mine) {
      const news = await read({ ticket: mine.ticket, since: mine.since }).catch(() => null);
      if (run !== mine) return;
      misses = news ? 0 : misses + 1;
      if (misses > RETRIES) return stage.append(FAILED);
      if (news?.lines) {
        if (mine.since === 0) stage.feed("");
        stage.append(news.lines);
        mine.since = news.next;
      }
      if (news?.resting) return;
      await pause(news ? stage.interval() : 1000 * misses);
    }
  }
}

// The value that asks to follow is a single short line: nothing else has to be parsed to know.
function ticketIn(value) {
  if (!value.startsWith('{"e":"follow"')) return null;
  return JSON.parse(value).ticket;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
