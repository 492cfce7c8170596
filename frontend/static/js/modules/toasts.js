// @ts-check
/** The region of toasts: those in the page expire, and answers of the server bring more (HX-Trigger: {"toast": {…}}). */
import { expire, toast } from "../toast.js";

/** @param {HTMLElement} el */
export function mount(el) {
  for (const item of el.querySelectorAll(".toast")) expire(/** @type {HTMLElement} */ (item));
  /** @param {Event} event */
  const onToast = (event) => toast(/** @type {CustomEvent} */ (event).detail);
  document.addEventListener("toast", onToast);
  return () => document.removeEventListener("toast", onToast);
}
