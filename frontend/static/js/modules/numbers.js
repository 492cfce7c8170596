// @ts-check
/**
 * Figures that no frame carries (sums over minutes): every 15 s the part is fetched as the server draws it, and each cell with
 * `data-n` takes what the cell of the same name says there. Rows stay where they are.
 */
import { dateTime } from "../format.js";
import { live } from "../live.js";

const EVERY_MS = 15_000;

/** @param {HTMLElement} root */
export function mount(root) {
  const refresh = async () => {
    if (live.pauses.size > 0) return; // by a person, or because the tab is hidden
    const answer = await fetch(root.dataset.url ?? "").catch(() => null);
    if (answer === null || !answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const cell of root.querySelectorAll("[data-n]")) {
      const next = fresh.querySelector(`[data-n="${CSS.escape(cell.getAttribute("data-n") ?? "")}"]`);
      if (next !== null && next.textContent !== cell.textContent) cell.replaceChildren(...next.childNodes);
    }
    const seen = root.querySelector("[data-n='as-of'] time");
    if (!(seen instanceof HTMLTimeElement)) return;
    seen.dateTime = new Date().toISOString();
    seen.textContent = dateTime(Date.now());
  };
  const timer = setInterval(refresh, EVERY_MS);
  return () => clearInterval(timer);
}
