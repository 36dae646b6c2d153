// What a visitor chose, kept for the next visit. Where the browser keeps nothing (private windows,
// pages opened from a file), it is kept as long as the page is open.

const STEM = "specviz.";

export function createMemory() {
  const here = new Map();

  function get(name) {
    if (here.has(name)) return here.get(name);
    try {
      return window.localStorage.getItem(STEM + name);
    } catch {
      return null;
    }
  }

  function set(name, value) {
    here.set(name, value);
    try {
      window.localStorage.setItem(STEM + name, value);
    } catch {
      // Nothing can be kept here, or its room is used up.
    }
  }

  return { get, set };
}
