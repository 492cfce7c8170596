// @ts-check
/**
 * Figures that no frame carries (sums over minutes): every 15 s the part is fetched as the server draws it, and each cell with
 * `data-n` takes what the cell of the same name says there. Rows stay where they are.
 */
const EVERY_MS = 15_000;

/** @param {HTMLElement} root */
export function mount(root) {
  const refresh = async () => {
    if (document.hidden) return;
    const answer = await fetch(root.dataset.url ?? "").catch(() => null);
    if (answer === null || !answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const cell of root.querySelectorAll("[data-n]")) {
      const next = fresh.querySelector(`[data-n="${CSS.escape(cell.getAttribute("data-n") ?? "")}"]`);
      if (next !== null && next.textContent !== cell.textContent) cell.replaceChildren(...next.childNodes);
    }
    const seen = root.querySelector("[data-n='as-of'] time");
    if (seen instanceof HTMLTimeElement) seen.dateTime = new Date().toISOString();
  };
  const timer = setInterval(refresh, EVERY_MS);
  return () => clearInterval(timer);
}
