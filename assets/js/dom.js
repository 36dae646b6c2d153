// Building elements. Text always goes in as text nodes, never as markup.

export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) setAttribute(element, key, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function setAttribute(element, key, value) {
  if (value === null || value === undefined || value === false) return;
  if (key === "class") element.className = value;
  else if (key === "onclick") element.addEventListener("click", value);
  else element.setAttribute(key, value === true ? "" : String(value));
}

// Writes only on change: an unchanged text node costs no layout.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttr(element, name, value) {
  const text = value === null || value === undefined ? null : String(value);
  if (text === null) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

let counter = 0;

export function uniqueId(stem) {
  counter += 1;
  return "sv-" + stem + "-" + counter;
}

export const reducedMotion = window.matchMedia("(prefers-reduced-motion: reduce)");
