// @ts-check
/** A page with nothing to show yet: once the fleet has what it waits for (`data-awaits`: "servers" or "gpus"), it is loaded again. */
import { live } from "../live.js";

const SETTLE_MS = 2_000;

/** @param {HTMLElement} el */
export function mount(el) {
  let timer = 0;
  /** @param {import("../live/protocol.js").Frame} frame */
  const look = (frame) => {
    const found = Object.keys(frame.data[el.dataset.awaits ?? ""] ?? {});
    if (found.length > 0 && timer === 0) timer = window.setTimeout(() => location.reload(), SETTLE_MS);
  };
  const end = live.subscribe("fleet", { onSnapshot: look, onDelta: look });
  return () => {
    clearTimeout(timer);
    end();
  };
}
