// @ts-check
/**
 * Live readings in a page that the server rendered: finds the elements of each GPU and keeps their numbers, words and ages.
 *
 * An element with `data-gpu="<id>"` is a card, a row or a cell; `data-at` (ISO time of its reading), `data-interval`
 * (seconds), `data-state`, `data-total` (bytes), `data-limit` (watts) and `data-processes` say what the page knew. Inside it:
 * `data-r="<metric>" data-k="<kind>"` a number without its unit, `data-bar="<metric>"` a bar, `data-activity` a status.
 */
import { activityOf } from "./activity.js";
import { setFigure, setStatus } from "./dom.js";
import { duration, number } from "./format.js";
import { heatOf } from "./heat.js";

const CHANGED_MS = 600;
/** What these show is of the past. */
const STALE = new Set(["no_data", "missing", "lost"]);

/** Tone of each activity; the words are those of monitoring.activity. @type {Record<string, string>} */
const TONES = {
  busy: "ok", parked: "silenced", idle: "silenced", ghost: "warning", cannot_tell: "unknown", no_data: "unknown", missing: "critical", lost: "critical",
};

/** @returns {Record<string, string>} */
export function activityWords() {
  return {
    busy: gettext("Busy"),
    parked: gettext("Loaded, quiet"),
    idle: gettext("Idle"),
    ghost: gettext("Ghost memory"),
    cannot_tell: gettext("Cannot tell"),
    no_data: gettext("No data"),
    missing: gettext("Missing"),
    lost: gettext("Lost"),
  };
}

/**
 * Readings that follow from others, with what is known of the card.
 * @param {DOMStringMap} known
 * @param {Record<string, any>} entry
 * @param {string} metric
 * @returns {number | null | undefined}
 */
export function readingOf(known, entry, metric) {
  if (metric === "memory_percent") return share(entry.memory_used_bytes, known.total);
  if (metric === "power_percent") return share(entry.power_watts, known.limit);
  return entry[metric];
}

/** @param {number | null | undefined} value @param {string | undefined} total */
function share(value, total) {
  const whole = Number(total);
  return value === null || value === undefined || !whole ? null : (value / whole) * 100;
}

export class Readings {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.words = activityWords();
    /** Everything heard of each GPU, so that rows that appear later show it too. @type {Map<string, Record<string, any>>} */
    this.entries = new Map();
    /** Browser clock minus the panel's, ms: ages are measured on the panel's clock. */
    this.clockOffset = 0;
    this.index();
    this.timer = window.setInterval(() => this.age(), 1_000);
  }

  /** Look for the elements again, after rows were added or replaced. */
  index() {
    /** @type {Map<string, HTMLElement[]>} */
    this.elements = new Map();
    for (const element of /** @type {NodeListOf<HTMLElement>} */ (this.root.querySelectorAll("[data-gpu]"))) {
      const id = element.dataset.gpu ?? "";
      this.elements.set(id, [...(this.elements.get(id) ?? []), element]);
      const entry = this.entries.get(id);
      if (entry !== undefined) this.update(element, entry, false);
    }
  }

  /**
   * Take what a frame says of GPUs.
   * @param {Record<string, Record<string, any>>} gpus
   * @param {string} frameAt the panel's time of the frame
   */
  take(gpus, frameAt) {
    const sent = Date.parse(frameAt);
    if (!Number.isNaN(sent)) this.clockOffset = Date.now() - sent;
    for (const [id, entry] of Object.entries(gpus)) {
      const merged = { ...(this.entries.get(id) ?? {}), ...entry };
      this.entries.set(id, merged);
      for (const element of this.elements?.get(id) ?? []) this.update(element, merged, true);
    }
  }

  /** What the page knows of a GPU; undefined for one that it does not show. @param {string} id */
  known(id) {
    return this.elements?.get(id)?.[0]?.dataset;
  }

  /**
   * What is known and what was heard of the GPUs in a part of the page.
   * @param {ParentNode} part
   */
  *cards(part) {
    for (const element of /** @type {NodeListOf<HTMLElement>} */ (part.querySelectorAll("[data-gpu]"))) {
      const entry = this.entries.get(element.dataset.gpu ?? "");
      if (entry !== undefined) yield { known: element.dataset, entry };
    }
  }

  /** The panel's clock, ms. */
  now() {
    return Date.now() - this.clockOffset;
  }

  /** @param {HTMLElement} element @param {Record<string, any>} entry @param {boolean} isNew */
  update(element, entry, isNew) {
    if (entry.at) element.dataset.at = entry.at;
    for (const target of /** @type {NodeListOf<HTMLElement>} */ (element.querySelectorAll("[data-r]"))) {
      const value = readingOf(element.dataset, entry, target.dataset.r ?? "");
      if (value !== undefined) setText(target, number(value, target.dataset.k ?? "count"), isNew);
    }
    for (const bar of element.querySelectorAll("[data-bar]")) setBar(bar, readingOf(element.dataset, entry, bar.getAttribute("data-bar") ?? ""));
    this.judge(element, entry);
  }

  /** @param {HTMLElement} element @param {Record<string, any>} entry */
  judge(element, entry) {
    const found = activityOf(element.dataset, entry, this.now());
    // Before the first frame the page knows more than this does: only that it grows old can be said.
    const activity = entry.at === undefined && found !== "no_data" ? (element.dataset.doing ?? found) : found;
    element.dataset.doing = activity;
    if (element.dataset.heat !== undefined && entry.at !== undefined) this.shade(element, activity, entry.utilization_percent);
    element.classList.toggle("is-stale", STALE.has(activity));
    const status = /** @type {HTMLElement | null} */ (element.querySelector("[data-activity] > .status, [data-activity] > .pill"));
    if (status === null) return;
    const isDegraded = (entry.state ?? element.dataset.state) === "degraded" && TONES[activity] !== "critical";
    setStatus(status, isDegraded ? "warning" : TONES[activity], this.words[activity]);
  }

  /** A heat cell says what its card does in its shade and in words. @param {HTMLElement} element @param {string} activity @param {number | null | undefined} percent */
  shade(element, activity, percent) {
    const heat = heatOf(activity, percent);
    if (element.dataset.heat === heat) return;
    element.dataset.heat = heat;
    const said = element.querySelector(".heat-word");
    if (said === null || said.textContent === this.words[activity]) return;
    said.textContent = this.words[activity];
    element.title = `${element.title.split(" · ")[0]} · ${this.words[activity]}`;
  }

  /** Readings grow older by themselves: what no frame renews is greyed, with its age. */
  age() {
    if (document.hidden) return;
    for (const [id, elements] of this.elements ?? []) {
      for (const element of elements) {
        this.judge(element, this.entries.get(id) ?? {});
        const age = element.querySelector("[data-age]");
        if (age !== null) setAge(age, element, this.now());
      }
    }
  }

  destroy() {
    clearInterval(this.timer);
  }
}

/** @param {Element} target @param {HTMLElement} element @param {number} now */
function setAge(target, element, now) {
  const at = Date.parse(element.dataset.at ?? "");
  const isStale = element.classList.contains("is-stale") && !Number.isNaN(at);
  const text = isStale ? interpolate(gettext("stale %s"), [duration((now - at) / 1000)]) : "";
  if (target.textContent !== text) target.textContent = text;
}

/** @param {HTMLElement} target @param {string} text @param {boolean} isNew */
function setText(target, text, isNew) {
  if (target.closest("[data-calm]") !== null) {
    if (target.textContent !== text) target.textContent = text;
    return;
  }
  if (!setFigure(target, text) || !isNew) return;
  target.classList.remove("changed");
  void target.offsetWidth; // a class that stays would not start the tint again
  target.classList.add("changed");
  setTimeout(() => target.classList.remove("changed"), CHANGED_MS);
}

/** @param {Element} bar @param {number | null | undefined} percent */
function setBar(bar, percent) {
  if (percent === undefined) return;
  const fill = bar.querySelector(".fill");
  fill?.setAttribute("width", String(Math.max(0, Math.min(100, percent ?? 0))));
}
