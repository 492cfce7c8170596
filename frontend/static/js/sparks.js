// @ts-check
/** Curves of a quarter of an hour in the rows of servers: drawn once the row is there, fetched for all rows at once. */

const WIDTH = 96;
const HEIGHT = 24;
const SVG = "http://www.w3.org/2000/svg";

/**
 * Line segments of a curve from 0 to 100 percent; a gap starts a new one.
 * @param {(number | null)[]} values
 * @returns {string} path data
 */
export function sparkPath(values) {
  const step = WIDTH / Math.max(1, values.length - 1);
  let isDrawing = false;
  return values
    .map((value, index) => {
      if (value === null) {
        isDrawing = false;
        return "";
      }
      const command = isDrawing ? "L" : "M";
      isDrawing = true;
      return `${command}${(index * step).toFixed(1)} ${(HEIGHT - 2 - (value / 100) * (HEIGHT - 4)).toFixed(1)}`;
    })
    .join("");
}

/** @param {HTMLElement} root with data-sparks-url */
export async function drawSparks(root) {
  const empty = [...root.querySelectorAll("[data-spark]:empty")];
  if (empty.length === 0) return;
  const ids = empty.map((element) => element.getAttribute("data-spark"));
  try {
    const response = await fetch(`${root.dataset.sparksUrl}?servers=${ids.join(",")}`);
    if (!response.ok) return;
    const lines = await response.json();
    for (const element of empty) draw(element, lines[element.getAttribute("data-spark") ?? ""] ?? []);
  } catch {
    // A row without its curve is complete all the same.
  }
}

/** @param {Element} element @param {(number | null)[]} values */
function draw(element, values) {
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", sparkPath(values));
  element.replaceChildren(path);
}
