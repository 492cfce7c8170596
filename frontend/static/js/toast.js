// @ts-check
/** Short messages at the edge of the page. `toast({text, tone, undo})`; `undo` is an address that a button posts to. */
import { csrfToken, el, sprite } from "./dom.js";

const SHOWN_MS = 10_000;

/**
 * @param {{ text: string, tone?: string, undo?: string, once?: string }} message `once`: replaces the toast of the same name
 */
export function toast({ text, tone = "ok", undo = "", once = "" }) {
  const region = document.querySelector(".toasts");
  if (!region) return;
  if (once) region.querySelector(`[data-once="${once}"]`)?.remove();
  const item = el("div", { class: "toast", "data-once": once || null }, sprite("mark", tone), el("span", { class: "text" }, text));
  if (undo) {
    const token = el("input", { type: "hidden", name: "csrfmiddlewaretoken", value: csrfToken() });
    item.append(el("form", { method: "post", action: undo }, token, el("button", { class: "btn btn-s" }, gettext("Undo"))));
  }
  const close = el("button", { type: "button", class: "btn btn-quiet btn-icon btn-s", "data-toast-close": true, "aria-label": gettext("Dismiss") });
  close.append(sprite("icon", "close"));
  item.append(close);
  region.append(item);
  expire(/** @type {HTMLElement} */ (item));
}

/**
 * Take a toast away after a while; not while somebody reads it or is about to press its button.
 * @param {HTMLElement} item
 */
export function expire(item) {
  let timer = 0;
  const arm = () => { timer = window.setTimeout(() => item.remove(), SHOWN_MS); };
  const hold = () => window.clearTimeout(timer);
  for (const name of ["pointerenter", "focusin"]) item.addEventListener(name, hold);
  for (const name of ["pointerleave", "focusout"]) item.addEventListener(name, () => { hold(); arm(); });
  item.querySelector("[data-toast-close]")?.addEventListener("click", () => item.remove());
  arm();
}
