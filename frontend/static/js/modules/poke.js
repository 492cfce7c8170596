// @ts-check
/**
 * Lets a live topic hurry an htmx element that polls: `data-topic` names the topic, `hx-trigger="every 15s, poke"` the rest.
 * `data-about="leases 7"` leaves out what a frame says of others. Without sockets the polling alone does it; where people
 * may be at a dialog of the element, `data-every="30"` (seconds) polls in its place, and neither pulls the dialog away.
 */
import { live } from "../live.js";

const AT_MOST_EVERY_MS = 1000;

/** @param {HTMLElement} el */
export function mount(el) {
  let last = 0;
  let timer = 0;
  const poke = () => {
    last = Date.now();
    timer = 0;
    if (el.querySelector("dialog[open]")) soon();
    else htmx.trigger(el, "poke");
  };
  const soon = () => {
    if (!timer) timer = window.setTimeout(poke, Math.max(0, last + AT_MOST_EVERY_MS - Date.now()));
  };
  const [section, key] = (el.dataset.about ?? "").split(" ");
  /** @param {import("../live/protocol.js").Frame} frame */
  const hear = (frame) => {
    if (!key || frame.data[section]?.[key] !== undefined) soon();
  };
  const unsubscribe = live.subscribe(el.dataset.topic ?? "", { onSnapshot() {}, onDelta: hear });
  const every = Number(el.dataset.every ?? 0);
  const polling = every ? window.setInterval(() => soon(), every * 1000) : 0;
  return () => {
    window.clearTimeout(timer);
    window.clearInterval(polling);
    unsubscribe();
  };
}
