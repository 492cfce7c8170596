// @ts-check
/** How long something has been on its way: counts on from `data-seconds` while it runs. */
import { duration } from "../format.js";

/** @param {HTMLElement} el */
export function mount(el) {
  const begun = Date.now() - Number(el.dataset.seconds ?? 0) * 1000;
  const show = () => { el.textContent = duration((Date.now() - begun) / 1000); };
  const timer = setInterval(show, 1000);
  return () => clearInterval(timer);
}
