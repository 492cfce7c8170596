// @ts-check
/**
 * The list of endpoints: phases and numbers of replicas change in place, and an endpoint that is not in the list brings a
 * button that loads it again.
 */
import { setStatus } from "../dom.js";
import { live } from "../live.js";

/** One more and one less are of the number that is wanted now. @param {Element} row @param {number} desired */
function rescale(row, desired) {
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (row.querySelectorAll("a[data-scale]"))) {
    const url = new URL(link.href);
    const wanted = Math.max(desired + Number(link.dataset.scale), 0);
    const said = link.querySelector("[data-count]");
    url.searchParams.set("replicas", String(wanted));
    link.href = url.href;
    link.hidden = wanted === desired;
    if (said !== null) said.textContent = String(wanted);
  }
}

/** @param {HTMLElement} root */
export function mount(root) {
  /** @type {Record<string, [string, string]>} */
  const words = JSON.parse(root.dataset.words ?? "{}");
  const button = /** @type {HTMLElement | null} */ (root.querySelector("[data-refresh]"));
  /** @type {Set<string>} */
  const known = new Set();

  /** @param {import("../live/protocol.js").Frame} frame @param {boolean} isFirst */
  const take = (frame, isFirst) => {
    for (const [id, endpoint] of Object.entries(frame.data.endpoints ?? {})) {
      const row = root.querySelector(`[data-endpoint="${CSS.escape(id)}"]`);
      if (row === null && !isFirst && !known.has(id) && button !== null) button.hidden = false;
      known.add(id);
      if (row === null) continue;
      const [tone, word] = words[endpoint.phase] ?? ["unknown", endpoint.phase];
      const status = /** @type {HTMLElement | null} */ (row.querySelector(".status"));
      if (status !== null) setStatus(status, tone, word);
      for (const name of ["ready", "desired"]) {
        const cell = row.querySelector(`[data-f="${name}"]`);
        if (cell !== null) cell.textContent = String(endpoint[name]);
      }
      rescale(row, Number(endpoint.desired));
    }
  };
  const reload = () => location.reload();
  button?.addEventListener("click", reload);
  const end = live.subscribe("endpoints", { onSnapshot: (frame) => take(frame, true), onDelta: (frame) => take(frame, false) });
  return () => {
    end();
    button?.removeEventListener("click", reload);
  };
}
