// @ts-check
/** One endpoint: figures of its replicas move in place, and the part is fetched again when the state behind them changes. */
import { setFigure } from "../dom.js";
import { knownOf, waitingIn } from "../endpoint_frames.js";
import { number } from "../format.js";
import { live } from "../live.js";

const SETTLE_MS = 700;
const FIGURES = ["running", "waiting", "kv_cache_percent", "percent"];

/** @param {HTMLElement} root */
export function mount(root) {
  let timer = 0;
  const refetch = () => {
    timer = 0;
    // A number that somebody types would be lost with the part.
    if (root.contains(document.activeElement) && document.activeElement instanceof HTMLInputElement) return soon();
    htmx.ajax("GET", `${location.pathname}?part=status`, { target: root, swap: "outerHTML" });
  };
  const soon = () => { if (timer === 0) timer = window.setTimeout(refetch, SETTLE_MS); };

  /** @param {import("../live/protocol.js").Frame} frame */
  const take = (frame) => {
    const replicas = frame.data.replicas ?? {};
    const [endpoint] = Object.values(frame.data.endpoint ?? {});
    if (endpoint !== undefined && knownOf(endpoint, replicas) !== root.dataset.known) soon();
    for (const [id, replica] of Object.entries(replicas)) show(root.querySelector(`[data-replica="${CSS.escape(id)}"]`), replica);
    sum(root, waitingIn(frame.data));
  };
  const end = live.subscribe(root.dataset.topic ?? "", { onSnapshot: take, onDelta: take });
  return () => {
    end();
    clearTimeout(timer);
  };
}

/** @param {Element | null} row @param {Record<string, any>} replica */
function show(row, replica) {
  if (row === null) return;
  for (const name of FIGURES) {
    const cell = row.querySelector(`[data-f="${name}"]`);
    if (cell !== null) setFigure(cell, number(replica[name], "count"));
  }
}

/** @param {HTMLElement} root @param {number | null | undefined} waiting */
function sum(root, waiting) {
  const tile = root.querySelector("[data-sum='waiting']");
  if (tile !== null && waiting !== undefined) setFigure(tile, number(waiting, "count"));
}
