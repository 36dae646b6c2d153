// A chart as a file of its own, SVG or PNG, made in the browser: nothing is asked of a server.

import { el } from "./dom.js";
import { wrapped } from "./lines.js";
import { svg } from "./svg.js";

const MARGIN = 16;
const HEADING = 28;
const GAP = 8;
const LINE = 16;
const LETTER = 6.6; // pixels, on the wide side for 12 px text
const SHARPNESS = 2; // pixels of the PNG for one of the page
const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linejoin",
  "stroke-linecap",
  "font-family",
  "font-size",
  "font-weight",
  "opacity",
  "visibility",
];

// Buttons that save what `picture()` draws, an SVG that stands alone.
export function saveButtons(picture, title, name) {
  const button = (kind, save) =>
    el(
      "button",
      {
        type: "button",
        class: "sv-quiet sv-save",
        "aria-label": "Save the plot " + title + " as " + kind,
        onclick: () => save(picture(), name),
      },
      kind,
    );
  return el("span", { class: "sv-saves" }, button("SVG", saveSvg), button("PNG", savePng));
}

// A copy that needs no style sheet: every element carries the colours and sizes it has on screen.
export function standalone(root, title, note) {
  return framed(copy(root), title, note, getComputedStyle(root));
}

// A drawing on the page's ground, its title above it and below it the note that says what is drawn.
// `style` knows the colours in force.
export function framed(drawing, title, note, style) {
  const [, , width, height] = drawing.getAttribute("viewBox").split(" ").map(Number);
  drawing.setAttribute("x", MARGIN);
  drawing.setAttribute("y", MARGIN + HEADING);
  const lines = wrapped(note, width / LETTER);
  const below = MARGIN + HEADING + height + GAP;
  const size = { width: width + 2 * MARGIN, height: below + lines.length * LINE + MARGIN };
  const face = { x: MARGIN, "font-family": style.fontFamily };
  const colour = (name) => style.getPropertyValue(name).trim();
  const heading = { ...face, y: MARGIN + 16, fill: colour("--sv-ink") };
  const small = { ...face, "font-size": 12, fill: colour("--sv-muted") };
  return svg(
    "svg",
    { ...size, viewBox: "0 0 " + size.width + " " + size.height },
    svg("title", {}, title),
    svg("rect", { ...size, fill: colour("--sv-page") }),
    svg("text", { ...heading, "font-size": 16, "font-weight": 600 }, title),
    drawing,
    ...lines.map((line, i) => svg("text", { ...small, y: below + (i + 1) * LINE - 4 }, line)),
  );
}

function copy(root) {
  const twin = root.cloneNode(true);
  const theirs = twin.querySelectorAll("*");
  root.querySelectorAll("*").forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) theirs[i].setAttribute(name, style.getPropertyValue(name));
    theirs[i].removeAttribute("class");
  });
  return twin;
}

export function saveSvg(drawing, name) {
  download(new Blob([asText(drawing)], { type: "image/svg+xml" }), name + ".svg");
}

export async function savePng(drawing, name) {
  const image = new Image();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(asText(drawing));
  await image.decode();
  const canvas = el("canvas", {});
  canvas.width = image.width * SHARPNESS;
  canvas.height = image.height * SHARPNESS;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(blob, name + ".png"), "image/png");
}

const asText = (drawing) => new XMLSerializer().serializeToString(drawing);

function download(blob, name) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
