// @ts-check
/** Keyboard shortcuts: `/` and Ctrl K search, g + letter goes, j k Enter walk rows, Space pauses live values, ? lists them. */
import { isTyping } from "./dom.js";

const CHORD_MS = 1200;
let chordUntil = 0;

/** @param {string} id */
function openDialog(id) {
  const dialog = document.getElementById(id);
  if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal();
}

/** @param {number} step */
function moveCursor(step) {
  const rows = [...document.querySelectorAll("[data-rows] > tr")].filter((row) => row.querySelector("a[href]"));
  if (!rows.length) return;
  const present = rows.findIndex((row) => row.hasAttribute("data-cursor"));
  const next = Math.min(rows.length - 1, Math.max(0, present === -1 ? 0 : present + step));
  rows[present]?.removeAttribute("data-cursor");
  rows[next].setAttribute("data-cursor", "");
  /** @type {HTMLElement | null} */ (rows[next].querySelector("a[href]"))?.focus({ preventScroll: true });
  rows[next].scrollIntoView({ block: "nearest" });
}

/**
 * @param {string} key
 * @returns {boolean} whether it went somewhere
 */
function go(key) {
  const link = document.querySelector(`[data-go="${CSS.escape(key)}"]`);
  if (!(link instanceof HTMLAnchorElement)) return false;
  window.location.assign(link.href);
  return true;
}

/** @type {Record<string, () => void>} */
const COMMANDS = {
  "/": () => openSearch(),
  "?": () => openDialog("shortcuts"),
  j: () => moveCursor(1),
  k: () => moveCursor(-1),
  g: () => { chordUntil = Date.now() + CHORD_MS; },
};

/** Open the search over everything. */
export function openSearch() {
  openDialog("palette");
  const input = document.querySelector("#palette input");
  if (input) htmx.trigger(input, "palette-open");
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.defaultPrevented || event.altKey || event.metaKey || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.ctrlKey) {
    if (event.key.toLowerCase() !== "k") return;
    event.preventDefault();
    openSearch();
    return;
  }
  if (Date.now() < chordUntil) {
    chordUntil = 0;
    if (go(event.key)) event.preventDefault();
    return;
  }
  if (event.key === " ") {
    // On a control, Space presses it; elsewhere it scrolls, unless the page has live values to pause.
    const live = document.getElementById("live-state");
    if (event.target !== document.body || !live || live.hidden) return;
    event.preventDefault();
    document.dispatchEvent(new CustomEvent("fleetdeck:live-toggle"));
    return;
  }
  const command = COMMANDS[event.key];
  if (!command) return;
  event.preventDefault();
  command();
}

/** Begin, unless the viewer switched shortcuts off. */
export function start() {
  if ("shortcuts" in document.documentElement.dataset) document.addEventListener("keydown", onKey);
}
