// @ts-check
/**
 * The Overview: heat cells and counts move with the fleet's frames; the sentences are fetched again when a state changed or
 * an event came, and once a minute.
 */
import { setFigure } from "../dom.js";
import { dateTime, number, offsetLabel } from "../format.js";
import { countCards } from "../heat.js";
import { live } from "../live.js";
import { Readings } from "../readings.js";

const SETTLE_MS = 2_000;
const MINUTE_MS = 60_000;

/** @param {HTMLElement} root */
export function mount(root) {
  const readings = new Readings(root);
  const refresh = refresher(root);
  /** @type {Map<string, string>} */
  const states = new Map();
  let isFirst = true;

  /** @param {import("../live/protocol.js").Frame} frame */
  const take = (frame) => {
    readings.take(frame.data.gpus ?? {}, frame.at);
    showCounts(root, readings);
    showTime(root, frame.data.gpus ?? {});
    if (hasChanged(readings, states, frame.data, isFirst)) refresh.soon();
    isFirst = false;
  };
  const endings = [
    live.subscribe("fleet", { onSnapshot: take, onDelta: take }),
    live.subscribe("events", { onDelta: () => refresh.soon() }),
    live.subscribe("leases", { onDelta: () => refresh.soon() }),
  ];
  return () => {
    for (const end of endings) end();
    refresh.stop();
    readings.destroy();
  };
}

/**
 * Whether servers or cards came, went, or changed their state since the page was made.
 * @param {Readings} readings
 * @param {Map<string, string>} states
 * @param {import("../live/protocol.js").LiveData} data
 * @param {boolean} isFirst whether this is the first frame, which tells of servers that the page shows already
 */
function hasChanged(readings, states, data, isFirst) {
  let isOther = false;
  for (const [id, server] of Object.entries(data.servers ?? {})) {
    const word = [server.state, server.driver_state, server.gpus_known, server.gpus_missing].join("|");
    isOther ||= states.has(id) ? states.get(id) !== word : !isFirst;
    states.set(id, word);
  }
  for (const [id, entry] of Object.entries(data.gpus ?? {})) {
    if (entry.state === undefined || entry.parent) continue;
    const known = readings.known(id);
    isOther ||= known !== undefined && known.state !== entry.state;
  }
  return isOther;
}

/** @param {HTMLElement} root @param {Readings} readings */
function showCounts(root, readings) {
  const counts = countCards(readings.cards(root), readings.now());
  if (counts.total === 0) return;
  for (const target of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("[data-count]"))) {
    const value = counts[/** @type {keyof typeof counts} */ (target.dataset.count)];
    setFigure(target, number(value, "count"));
  }
  root.querySelector('[data-bar="mean"] .fill')?.setAttribute("width", String(counts.mean ?? 0));
}

/** @param {HTMLElement} root @param {Record<string, any>} gpus */
function showTime(root, gpus) {
  const newest = Math.max(...Object.values(gpus).map((entry) => Date.parse(entry.at ?? "") || 0));
  const time = /** @type {HTMLTimeElement | null} */ (root.querySelector("[data-data-at] time"));
  if (!(newest > 0) || time === null || newest <= Date.parse(time.dateTime)) return;
  time.dateTime = new Date(newest).toISOString();
  time.textContent = `${dateTime(newest)} ${offsetLabel(newest)}`;
}

/** @param {HTMLElement} root */
function refresher(root) {
  let timer = 0;
  const fetchPart = () => {
    timer = 0;
    if (document.hidden || live.state.name === "paused") return;
    htmx.ajax("GET", `${location.pathname}?part=status`, { target: root, swap: "outerHTML" });
  };
  const minute = setInterval(fetchPart, MINUTE_MS);
  return {
    soon() {
      if (timer === 0) timer = window.setTimeout(fetchPart, SETTLE_MS);
    },
    stop() {
      clearTimeout(timer);
      clearInterval(minute);
    },
  };
}
