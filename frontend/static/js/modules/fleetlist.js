// @ts-check
/**
 * The lists of the Fleet page: rows in chunks that are fetched as they come into sight, cells that move in place. The order
 * never changes under the pointer: what would reorder rows waits behind a button, or until the pointer is elsewhere.
 */
import { ChunkedRows } from "../chunks.js";
import { number } from "../format.js";
import { sumCards } from "../heat.js";
import { live } from "../live.js";
import { Readings } from "../readings.js";
import { drawSparks } from "../sparks.js";

const REFRESH_MS = 15_000;
const SETTLE_MS = 2_000;
/** What tells how long the list is, beside it. */
const COUNTS = [".tabs", "[data-total-words]"];
const KINDS = { busy: "count", memory: "gib", power: "watts", temperature: "celsius" };

/** @param {HTMLElement} root */
export function mount(root) {
  const readings = new Readings(root);
  const changed = () => {
    readings.index();
    drawSparks(root);
  };
  const rows = new ChunkedRows(root, changed, count);
  const button = /** @type {HTMLElement | null} */ (document.querySelector("[data-refresh]"));
  const list = new List(root, readings, rows, button);
  const end = live.subscribe("fleet", { onSnapshot: (frame) => list.take(frame), onDelta: (frame) => list.take(frame) });
  const timer = setInterval(() => list.renew(), REFRESH_MS);
  const clicked = () => list.show();
  button?.addEventListener("click", clicked);
  drawSparks(root);
  return () => {
    end();
    clearInterval(timer);
    clearTimeout(list.settling);
    button?.removeEventListener("click", clicked);
    rows.destroy();
    readings.destroy();
  };
}

/** The page as it is now says how many rows there are. */
async function count() {
  const response = await fetch(location.href);
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const selector of COUNTS) {
    const [there, here] = [fresh.querySelector(selector), document.querySelector(selector)];
    if (there !== null && here !== null) here.replaceChildren(...there.childNodes);
  }
}

class List {
  /**
   * @param {HTMLElement} root
   * @param {Readings} readings
   * @param {ChunkedRows} rows
   * @param {HTMLElement | null} button
   */
  constructor(root, readings, rows, button) {
    this.root = root;
    this.readings = readings;
    this.rows = rows;
    this.button = button;
    this.isServers = root.dataset.tab === "servers";
    this.hasChanged = false;
    this.knownOnce = false;
    this.settling = 0;
    /** @type {Map<string, string>} */
    this.states = new Map();
  }

  /** @param {import("../live/protocol.js").Frame} frame */
  take(frame) {
    const gpus = frame.data.gpus ?? {};
    this.readings.take(gpus, frame.at);
    if (this.isServers) this.sum();
    if (this.isOther(frame.data)) {
      this.hasChanged = true;
      if (this.button !== null) this.button.hidden = !this.isInUse();
      if (this.settling === 0) this.settling = window.setTimeout(() => this.renew(), SETTLE_MS);
    }
  }

  /** Servers that came, went or changed their state: other rows, or rows in another order. @param {import("../live/protocol.js").LiveData} data */
  isOther(data) {
    let isOther = false;
    for (const [id, server] of Object.entries(data.servers ?? {})) {
      const word = [server.state, server.driver_state, server.gpus_known, server.gpus_missing].join("|");
      const isKnown = this.states.has(id);
      isOther ||= isKnown ? this.states.get(id) !== word : this.knownOnce;
      this.states.set(id, word);
    }
    this.knownOnce ||= this.states.size > 0;
    return isOther;
  }

  /** Figures of whole servers follow from those of their cards. */
  sum() {
    for (const row of /** @type {NodeListOf<HTMLElement>} */ (this.root.querySelectorAll("tr[data-server]"))) {
      const sums = sumCards(this.readings.cards(row), this.readings.now());
      for (const target of /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll("[data-agg]"))) {
        const name = /** @type {keyof typeof KINDS} */ (target.dataset.agg);
        const text = number(sums[name], KINDS[name]);
        if (target.textContent !== text) target.textContent = text;
      }
    }
  }

  isInUse() {
    return this.root.matches(":hover") || this.root.contains(document.activeElement);
  }

  /** Fetch the rows in sight again, when nobody is at them. */
  renew() {
    clearTimeout(this.settling);
    this.settling = 0;
    if (document.hidden || live.state.name === "paused" || this.isInUse()) return;
    if (this.hasChanged || this.isServers) this.show();
  }

  show() {
    this.hasChanged = false;
    if (this.button !== null) this.button.hidden = true;
    this.rows.renew();
  }
}
