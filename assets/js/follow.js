// Following a live run: the page asks for what is new when it can afford to show it, so that a slow
// page is never flooded and a run is never slowed down by its own display.

const PATIENCE_MS = 300_000; // a lost connection is waited for this long
const LONGEST_PAUSE_MS = 5000;
const MISSES_TOLD = 2; // a single one may be chance
const LOST =
  "The connection to the server of this page is lost. What has arrived is kept, and the run is" +
  " asked for again.";
const GIVEN_UP =
  "The server of this page does not answer any more. What has arrived is kept. Reload the page" +
  " to run again.";

// `read({ticket, since})` gives {lines, next, resting}. The function returned takes the stage's
// value: a recorded run as lines, or one line that names the live run to follow. `cameBack` is
// called when a run rests that was followed over a lost connection: other news of it may have been
// lost too.
export function createFollower(stage, read, cameBack = () => {}) {
  let run = null; // what is followed: {ticket, since, orders, asking}

  return function show(value) {
    const ticket = ticketIn(value);
    if (ticket === null) {
      run = null;
      stage.feed(value);
    } else {
      if (run?.ticket !== ticket) run = { ticket, since: 0, orders: 0, asking: false };
      run.orders += 1;
      if (!run.asking) follow(run);
    }
  };

  // One at a time asks about a run: what it is told counts as read, so nothing of it may be dropped.
  async function follow(mine) {
    mine.asking = true;
    const wasLost = await askUntilItRests(mine);
    mine.asking = false;
    if (wasLost) cameBack();
  }

  // Whether the run rests and the connection was lost on the way.
  async function askUntilItRests(mine) {
    let wasLost = false;
    let misses = 0;
    let heard = performance.now();
    while (run === mine) {
      const orders = mine.orders;
      const news = await read({ ticket: mine.ticket, since: mine.since }).catch(() => null);
      if (run !== mine) return false;
      if (!news) {
        misses += 1;
        if (performance.now() - heard > PATIENCE_MS) {
          append({ e: "error", message: GIVEN_UP });
          return false;
        }
        if (misses === MISSES_TOLD) append({ e: "status", message: LOST });
        await onlineOr(Math.min(1000 * misses, LONGEST_PAUSE_MS));
        continue;
      }
      if (misses >= MISSES_TOLD) append({ e: "status", message: "" });
      wasLost ||= misses > 0;
      misses = 0;
      heard = performance.now();
      take(mine, news);
      // An answer that was under way when the run was told to go on knows nothing of that.
      if (news.resting && orders === mine.orders) return wasLost;
      await pause(stage.interval());
    }
    return false;
  }

  function take(mine, news) {
    if (!news.lines) return;
    if (mine.since === 0) stage.feed("");
    stage.append(news.lines);
    mine.since = news.next;
  }

  function append(event) {
    stage.append(JSON.stringify(event) + "\n");
  }
}

// The value that asks to follow is a single short line: nothing else has to be parsed to know.
function ticketIn(value) {
  if (!value.startsWith('{"e":"follow"')) return null;
  return JSON.parse(value).ticket;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Until so long has passed or the browser says that it is online again.
function onlineOr(ms) {
  return new Promise((done) => {
    const go = () => {
      clearTimeout(timer);
      window.removeEventListener("online", go);
      done();
    };
    const timer = setTimeout(go, ms);
    window.addEventListener("online", go);
  });
}
