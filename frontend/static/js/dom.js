// @ts-check
/** Small helpers for elements: no markup from strings, so nothing that an agent says can become HTML. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element. Attributes that are null or undefined are left out.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | null | undefined>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

/**
 * @param {Element} element
 * @param {Record<string, string | number | boolean | null | undefined>} attributes
 */
function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * An icon or mark of the sprite.
 * @param {"icon" | "mark"} kind
 * @param {string} name
 * @returns {SVGSVGElement}
 */
export function sprite(kind, name) {
  const svg = document.createElementNS(SVG, "svg");
  setAttributes(svg, { class: kind, "aria-hidden": "true", focusable: "false", "data-tone": kind === "mark" ? name : null });
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#${kind}-${name}`);
  svg.append(use);
  return svg;
}

/**
 * Show a state on an element made by components/status.html: shape, word and colour together.
 * @param {HTMLElement} element
 * @param {string} tone
 * @param {string} word
 */
export function setStatus(element, tone, word) {
  if (element.dataset.tone !== tone) {
    element.dataset.tone = tone;
    element.querySelector("use")?.setAttribute("href", `#mark-${tone}`);
  }
  const text = element.querySelector(".word");
  if (text && text.textContent !== word) text.textContent = word;
}

/**
 * Write a figure; a missing one is a dash with its reason, and the unit behind it (class "after") goes by itself. A dash that
 * the page came with stays: the server knows why.
 * @param {Element} target
 * @param {string} text "—" when it is missing
 * @returns {boolean} whether anything changed
 */
export function setFigure(target, text) {
  const dash = target.querySelector(".missing");
  if (text !== "—") {
    if (dash === null && target.textContent === text) return false;
    target.textContent = text;
    return true;
  }
  if (dash !== null || target.textContent === text) return false;
  const reason = gettext("no reading");
  const shown = el("span", { "aria-hidden": "true" }, text);
  target.replaceChildren(el("span", { class: "missing", title: reason }, shown, el("span", { class: "visually-hidden" }, reason)));
  return true;
}

/**
 * The CSRF token of this page, for fetch: `headers: {"X-CSRFToken": csrfToken()}`.
 * @returns {string}
 */
export function csrfToken() {
  return JSON.parse(document.body.getAttribute("hx-headers") ?? "{}")["X-CSRFToken"] ?? "";
}

/**
 * Whether the person is writing, so that a key is text and no command.
 * @param {EventTarget | null} target
 * @returns {boolean}
 */
export function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio]), textarea, select"));
}
