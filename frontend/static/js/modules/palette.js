// @ts-check
/**
 * The search over everything: the top bar's link opens it as a dialog; arrows choose, Enter opens what is chosen or
 * the only match, else the page of all results. Results come from htmx.
 */
import { openSearch } from "../shortcuts.js";

/** @param {HTMLElement} el the link in the top bar */
export function mount(el) {
  const dialog = document.getElementById("palette");
  if (!(dialog instanceof HTMLDialogElement)) return undefined;
  const input = /** @type {HTMLInputElement} */ (dialog.querySelector("input"));
  const results = /** @type {HTMLElement} */ (dialog.querySelector("[role=listbox]"));
  /** @type {Array<[EventTarget, string, (event: any) => void]>} */
  const listeners = [
    [el, "click", (event) => { event.preventDefault(); openSearch(); }],
    [dialog, "click", (event) => { if (event.target === dialog) dialog.close(); }],
    [input, "keydown", (event) => onKey(event, input, results)],
    // Until fresh results are there nothing is chosen: Enter then asks for the page of results.
    [input, "input", () => select(undefined, input, results)],
    [results, "htmx:afterSwap", () => select(options(results).length === 1 ? options(results)[0] : undefined, input, results)],
  ];
  for (const [target, name, listener] of listeners) target.addEventListener(name, listener);
  return () => listeners.forEach(([target, name, listener]) => target.removeEventListener(name, listener));
}

/** @param {HTMLElement} results */
function options(results) {
  return /** @type {HTMLAnchorElement[]} */ ([...results.querySelectorAll("[role=option]")]);
}

/**
 * @param {HTMLAnchorElement | undefined} option
 * @param {HTMLInputElement} input
 * @param {HTMLElement} results
 */
function select(option, input, results) {
  for (const other of options(results)) other.setAttribute("aria-selected", String(other === option));
  if (option) input.setAttribute("aria-activedescendant", option.id);
  else input.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
}

/**
 * @param {KeyboardEvent} event
 * @param {HTMLInputElement} input
 * @param {HTMLElement} results
 */
function onKey(event, input, results) {
  const all = options(results);
  const present = all.findIndex((option) => option.getAttribute("aria-selected") === "true");
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const next = event.key === "ArrowDown" ? present + 1 : Math.max(present, 0) - 1;
    select(all[(next + all.length) % all.length], input, results);
  } else if (event.key === "Enter" && all[present]) {
    event.preventDefault();
    all[present].click();
  }
}
