// Gradio's loading screen counts seconds with a frame request that asks for the next one, and goes
// on asking after the screen is gone: sixty frames a second for ever, on a page where nothing
// moves. Its request cannot be wrapped, as it keeps the browser's own function. But numbers of
// requests are given out in order, so that a lone loop can be told by them, and cancelled.

const FRAMES = 120; // two seconds with one and the same loop: no transition lasts as long
const TRIES = 30;
const AGAIN_MS = 2000;

// Looks for the loop while `isStill()`, cancels it, and leaves nothing running.
export async function stopStrayFrames(isStill) {
  for (let tries = 0; tries < TRIES; tries += 1) {
    if (isStill() && (await stopLoneLoop(isStill))) return true;
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
  return false;
}

// Each frame one request of ours, and one of the loop's: the numbers of ours are two apart. The one
// between them is the loop's. False as soon as anything else asks for a frame too.
function stopLoneLoop(isStill) {
  return new Promise((done) => {
    let alike = 0;
    const look = (current) => {
      const next = requestAnimationFrame(() => look(next));
      alike += 1;
      const disturbed = next - current !== 2 || !isStill();
      if (!disturbed && alike < FRAMES) return;
      cancelAnimationFrame(next);
      if (!disturbed) cancelAnimationFrame(current + 1);
      done(!disturbed);
    };
    const first = requestAnimationFrame(() => look(first));
  });
}
