// @ts-check
/**
 * The list of leases: states change in place (rows stay where they are), and a lease that is not in the list, or one that has
 * ended, brings a button that loads the list again.
 */
import { setStatus } from "../dom.js";
import { live } from "../live.js";

/** @param {HTMLElement} root */
export function mount(root) {
  /** @type {Record<string, [string, string]>} */
  const words = JSON.parse(root.dataset.words ?? "{}");
  const button = /** @type {HTMLElement | null} */ (root.querySelector("[data-refresh]"));
  /** @type {Set<string>} */
  const known = new Set();

  /** @param {import("../live/protocol.js").Frame} frame @param {boolean} isFirst */
  const take = (frame, isFirst) => {
    for (const [id, lease] of Object.entries(frame.data.leases ?? {})) {
      const row = root.querySelector(`[data-lease="${CSS.escape(id)}"]`);
      const status = /** @type {HTMLElement | null} */ (row?.querySelector(".status") ?? null);
      const [tone, word] = words[lease.state] ?? ["unknown", lease.state];
      if (status !== null) setStatus(status, tone, word);
      // The first frame tells of every open lease: those that the filters leave out are no news.
      const isNew = row === null && !isFirst && !known.has(id);
      if (button !== null && (isNew || (row !== null && lease.ended_at))) button.hidden = false;
      known.add(id);
    }
  };
  let isFirst = true;
  const onSnapshot = (/** @type {import("../live/protocol.js").Frame} */ frame) => {
    take(frame, isFirst);
    isFirst = false;
  };
  const reload = () => location.reload();
  button?.addEventListener("click", reload);
  const end = live.subscribe("leases", { onSnapshot, onDelta: (frame) => take(frame, false) });
  return () => {
    end();
    button?.removeEventListener("click", reload);
  };
}
