// @ts-check
/** Colours and dashes of lines, read from the page's CSS variables so that a theme change needs a redraw only. */

/** Eight lines differ by colour and by dash: three solid, three dashed, two dotted. CSS pixels. */
const DASHES = [[], [], [], [6, 3], [6, 3], [6, 3], [2, 2], [2, 2]];

/** @type {Map<string, string>} */
const cache = new Map();

/** The value of a CSS variable of the page. @param {string} name */
export function cssColour(name) {
  let value = cache.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";
    cache.set(name, value);
  }
  return value;
}

/** @param {number} position 0 for the first line */
export function lineColour(position) {
  return cssColour(`--series-${(position % DASHES.length) + 1}`);
}

/** @param {number} position @param {number} scale device pixels per CSS pixel */
export function lineDash(position, scale = 1) {
  return DASHES[position % DASHES.length].map((length) => length * scale);
}

/**
 * The same colour, see-through.
 * @param {string} hex #RRGGBB
 * @param {number} alpha 0…1
 */
export function withAlpha(hex, alpha) {
  if (!/^#[0-9a-f]{6}$/i.test(hex)) return hex;
  const part = (/** @type {number} */ at) => Number.parseInt(hex.slice(at, at + 2), 16);
  return `rgb(${part(1)} ${part(3)} ${part(5)} / ${alpha})`;
}

/**
 * Call back when the colours of the page change: the switch in the top bar, or the system's theme.
 * @param {() => void} callback
 * @returns {() => void} ends it
 */
export function onThemeChange(callback) {
  const changed = () => {
    cache.clear();
    callback();
  };
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", changed);
  };
}
