// The colours in force, for what is drawn by hand, and a call when they change.

const NAMES = [
  "page",
  "surface",
  "well",
  "ink",
  "muted",
  "line",
  "edge",
  "accent",
  "accepted",
  "accepted-tint",
  "rejected",
  "discarded",
  "resampled",
  "bonus",
  "drafting",
  "drafting-tint",
  "target",
];

export function readTheme(root) {
  const style = getComputedStyle(root);
  const theme = { font: style.fontFamily };
  for (const name of NAMES) theme[name] = style.getPropertyValue("--sv-" + name).trim();
  return theme;
}

export function watchTheme(onChange) {
  const observer = new MutationObserver(onChange);
  for (const element of [document.documentElement, document.body]) {
    observer.observe(element, { attributes: true, attributeFilter: ["class"] });
  }
  return () => observer.disconnect();
}
