// When to draw. Nothing is drawn while nothing changes; and while a run goes on that computes on
// this very machine perhaps, the page counts what its own frames cost and takes its share, no more.

// The fewest and the most milliseconds between two updates, and the share of the time that the
// main thread may spend on them. Painting on other threads costs about as much again as is left
// free below 4 %.
const LIVE = { least: 100, most: 500, share: 0.02 };
const REPLAY = { least: 0, most: 100, share: 0.5 };

export function createPacer(draw, isLive) {
  let request = 0;
  let timer = 0;
  let drawnAt = -Infinity;
  let cost = 0; // milliseconds an update takes, averaged over the last few
  let spent = 0; // since the last frame, on reading lines

  // Milliseconds from one update to the next.
  function interval() {
    const { least, most, share } = isLive() ? LIVE : REPLAY;
    return Math.min(Math.max(cost / share, least), most);
  }

  // At the next chance the browser gives.
  function soon() {
    clearTimeout(timer);
    timer = 0;
    if (!request) request = requestAnimationFrame(frame);
  }

  // When it is this page's turn again.
  function inTurn() {
    if (request || timer) return;
    const wait = drawnAt + interval() - performance.now();
    if (wait > 1) timer = setTimeout(soon, wait);
    else soon();
  }

  // Style, layout and painting follow the callback; the next task begins when they are done.
  function frame(now) {
    request = 0;
    drawnAt = performance.now();
    draw(now);
    setTimeout(note, 0, drawnAt);
  }

  function note(begin) {
    const latest = performance.now() - begin + spent;
    spent = 0;
    cost = cost === 0 ? latest : 0.7 * cost + 0.3 * latest;
  }

  return { soon, inTurn, interval, cost: () => cost, spend: (ms) => (spent += ms) };
}
