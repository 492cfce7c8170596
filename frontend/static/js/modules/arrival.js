// @ts-check
/**
 * A page with nothing to show yet: once the fleet has what it waits for (`data-awaits`: "servers" or "gpus"), it is loaded
 * again; not under an open dialog, which may be the very one that ticks off how the server joins.
 */
import { live } from "../live.js";

const SETTLE_MS = 2_000;

function reload() {
  const dialog = document.querySelector("dialog[open]");
  if (dialog === null) location.reload();
  else dialog.addEventListener("close", reload, { once: true });
}

/** @param {HTMLElement} el */
export function mount(el) {
  let timer = 0;
  /** @param {import("../live/protocol.js").Frame} frame */
  const look = (frame) => {
    const found = Object.keys(frame.data[el.dataset.awaits ?? ""] ?? {});
    if (found.length > 0 && timer === 0) timer = window.setTimeout(reload, SETTLE_MS);
  };
  const end = live.subscribe("fleet", { onSnapshot: look, onDelta: look });
  return () => {
    clearTimeout(timer);
    end();
  };
}
