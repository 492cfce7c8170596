// @ts-check
/**
 * A part of a page that follows one topic: readings move in place, and the part is fetched again when the state behind it
 * changes (a card that is gone, a driver that fails, other processes).
 */
import { setFigure } from "../dom.js";
import { live } from "../live.js";
import { Readings } from "../readings.js";
import { dateTime, number } from "../format.js";
import { sumCards } from "../heat.js";

const SETTLE_MS = 1_500;

/** @param {Record<string, any>} server what a frame says of a server, as ServerRow.known puts it */
export function knownOf(server) {
  const cards = [server.gpu_health, server.gpus_known, server.gpus_answering, server.gpus_missing];
  return [server.state, server.driver_state, ...cards, server.memory_limit_bytes ?? ""].join("|");
}

/** @param {HTMLElement} root */
export function mount(root) {
  const readings = new Readings(root);
  const refresh = refresher(root);
  /** @type {Map<string, string>} */
  const processes = new Map();

  /** @param {import("../live/protocol.js").Frame} frame */
  const take = (frame) => {
    readings.take(frame.data.gpus ?? {}, frame.at);
    for (const entry of Object.values(frame.data.host ?? {})) showHost(root, entry);
    showReport(root, frame.data);
    const power = root.querySelector("[data-agg='power']");
    if (power !== null) power.textContent = number(sumCards(readings.cards(root), readings.now()).power, "watts");
    const isOther = hasChanged(root, frame.data) || hasOtherProcesses(processes, frame.data.processes ?? {});
    if (isOther) refresh.soon();
  };
  const end = live.subscribe(root.dataset.topic ?? "", { onSnapshot: take, onDelta: take });
  return () => {
    end();
    refresh.stop();
    readings.destroy();
  };
}

/** @param {HTMLElement} root @param {import("../live/protocol.js").LiveData} data */
function hasChanged(root, data) {
  const servers = Object.values(data.server ?? {});
  if (root.dataset.known && servers.some((server) => knownOf(server) !== root.dataset.known)) return true;
  return Object.entries(data.gpus ?? {}).some(([id, entry]) => {
    const element = /** @type {HTMLElement | null} */ (root.querySelector(`[data-gpu="${CSS.escape(id)}"]`));
    if (root.dataset.doing !== undefined && element !== null && element.dataset.doing !== root.dataset.doing) return true;
    return entry.state !== undefined && element?.dataset.state !== entry.state;
  });
}

/**
 * The first list heard of a card is what the page shows; later ones count when other programs are in them.
 * @param {Map<string, string>} known
 * @param {Record<string, any>} lists
 */
function hasOtherProcesses(known, lists) {
  let isOther = false;
  for (const [id, list] of Object.entries(lists)) {
    const pids = list.processes.map((/** @type {any} */ process) => process.pid).sort().join(",");
    isOther ||= known.has(id) && known.get(id) !== pids;
    known.set(id, pids);
  }
  return isOther;
}

/** @param {HTMLElement} root @param {Record<string, any>} entry */
function showHost(root, entry) {
  for (const target of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("[data-host] [data-r]"))) {
    setFigure(target, number(entry[target.dataset.r ?? ""], target.dataset.k ?? "count"));
  }
  root.querySelector("[data-host]")?.classList.remove("is-stale");
}

/** Readings are a report too, though the state behind them did not change. @param {HTMLElement} root @param {import("../live/protocol.js").LiveData} data */
function showReport(root, data) {
  const time = /** @type {HTMLTimeElement | null} */ (root.querySelector("[data-last-report] time"));
  const entries = [...Object.values(data.gpus ?? {}), ...Object.values(data.host ?? {})];
  const newest = Math.max(...entries.map((entry) => Date.parse(entry.at ?? "") || 0));
  if (time === null || !(newest > Date.parse(time.dateTime))) return;
  time.dateTime = new Date(newest).toISOString();
  time.textContent = dateTime(newest);
}

/** @param {HTMLElement} root */
function refresher(root) {
  let timer = 0;
  return {
    soon() {
      if (timer !== 0) return;
      timer = window.setTimeout(() => {
        timer = 0;
        htmx.ajax("GET", `${location.pathname}?part=status`, { target: root, swap: "outerHTML" });
      }, SETTLE_MS);
    },
    stop: () => clearTimeout(timer),
  };
}
