// The pass with which a page that is loaded anew takes over what its visitor had.

const PASS = "specviz.pass";
const UNLOADING_MS = 2000; // a page may take that long to go
const HERE_MS = 120_000; // the server keeps what a visitor has for 5 min after the last sign of them

// What a page shows when it arrives: `shown`, the pass of the page that stood here before it, empty
// unless it was loaded anew, and `alone`, whether the browser knows that no other page has it. A tab
// that was opened from another one has that tab's memory too, but is not its visitor come back.
export async function showPass() {
  const [visit] = performance.getEntriesByType("navigation");
  const before = visit?.type === "reload" ? recall() : "";
  if (!before) {
    remember("");
    return { shown: "", alone: false };
  }
  const alone = await held(before);
  return { shown: alone === false ? "" : before, alone: alone === true };
}

// Keeps the page's own pass for the page that will stand here after it. With `here(pass)` the page
// says that it is there: Gradio does not notice that its connection was lost while nothing is asked,
// nor makes a new one.
export function keepPass(pass, here) {
  remember(pass);
  held(pass);
  const say = () => here(pass).catch(() => {});
  setInterval(say, HERE_MS);
  window.addEventListener("online", say);
  document.addEventListener("visibilitychange", () => document.hidden || say());
}

const holding = new Map();

// Whether this page alone has a pass, as soon as that is so; null where the browser cannot tell:
// it keeps locks for secure pages alone.
function held(pass) {
  if (!navigator.locks) return Promise.resolve(null);
  if (!holding.has(pass)) holding.set(pass, locked(PASS + "." + pass));
  return holding.get(pass);
}

// Whether a lock could be had. The page then has it until it goes.
function locked(name) {
  return new Promise((done) => {
    const hold = () => {
      done(true);
      return new Promise(() => {});
    };
    const options = { signal: AbortSignal.timeout(UNLOADING_MS) };
    navigator.locks.request(name, options, hold).catch(() => done(false));
  });
}

function recall() {
  try {
    return window.sessionStorage.getItem(PASS) ?? "";
  } catch {
    return "";
  }
}

function remember(pass) {
  try {
    window.sessionStorage.setItem(PASS, pass);
  } catch {
    // Nothing can be kept here: a page that is loaded anew begins anew.
  }
}
