// @ts-check
/**
 * The charts of one page as one thing: one request for those on the screen, one window of time, one cursor, one legend.
 */
import { zone } from "../format.js";
import { Chart } from "./chart.js";
import { fetchSeries } from "./fetch.js";
import { Markers } from "./markers.js";
import { onThemeChange } from "./palette.js";
import { Reader } from "./reader.js";
import { pointsFor, REFETCH_MS, TimeWindow } from "./window.js";

const HOST_PREFIX = "host.";
const CALM_MS = 5_000;
const MINUTE_MS = 60_000;
/** What no frame appends is fetched so often while it slides over no more than an hour. */
const POLLED_MS = 15_000;
const POLLED_SECONDS = 3_600;

/**
 * @typedef {object} ChartConfig
 * @property {string} id
 * @property {import("./chart.js").Choice[]} choices
 * @typedef {object} BoardConfig
 * @property {string[]} urls of the series: one, or those of a card on each server it was on
 * @property {string} topic
 * @property {number} from seconds
 * @property {number} to seconds
 * @property {boolean} isLive
 * @property {number} intervalSeconds
 * @property {boolean} [isPolled] no frame brings its values: they are fetched again and again
 * @property {string} summariesUrl
 * @property {import("./outdated.js").Known | null} known what the charts were made of, where more may come to it
 * @property {ChartConfig[]} charts
 * @property {import("./markers.js").Marker[]} markers
 */

export class Board {
  /**
   * @param {HTMLElement} root
   * @param {BoardConfig} config
   */
  constructor(root, config) {
    this.root = root;
    this.config = config;
    this.zone = zone();
    this.syncKey = `board-${config.topic}`;
    this.time = new TimeWindow(config, () => Date.now() / 1000);
    this.markers = new Markers(config.markers, this.zone);
    this.reader = new Reader(this.zone);
    this.isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.isHeld = false;
    this.isPaused = false;
    this.drawnAt = 0;
    this.frame = 0;
    this.fetchTimer = 0;
    this.fetchedAt = 0;
    this.isForced = false;
    /** @type {AbortController | null} */
    this.request = null;
    /** @type {Set<Chart>} on the screen, to be fetched */
    this.wanted = new Set();
    /** @type {Map<Chart, ChartConfig>} */
    this.charts = new Map();
    /** @type {(() => void)[]} */
    this.endings = [];
    for (const chart of config.charts) this.add(chart);
    this.watch();
  }

  // --- the charts ---------------------------------------------------------------------------------------------------

  /** @param {ChartConfig} config */
  add(config) {
    const figure = /** @type {HTMLElement | null} */ (this.root.querySelector(`[data-chart="${CSS.escape(config.id)}"]`));
    if (figure === null) return;
    const chart = new Chart(figure, config.choices[0], this);
    this.charts.set(chart, config);
    this.reader.attach(chart);
    const select = /** @type {HTMLSelectElement | null} */ (figure.querySelector("[data-choice]"));
    select?.addEventListener("change", () => this.choose(chart, select.value));
    this.hold(chart);
  }

  /** @param {Chart} chart @param {string} key */
  choose(chart, key) {
    const choice = this.charts.get(chart)?.choices.find((one) => one.key === key);
    if (choice === undefined) return;
    chart.choose(choice);
    chart.figure.dataset.state = "loading";
    this.fetch([chart]);
  }

  /** While the pointer reads a chart, its lines stand still. @param {Chart} chart */
  hold(chart) {
    const enter = () => {
      this.isHeld = true;
    };
    const leave = () => {
      this.isHeld = false;
      this.reader.hide();
      this.schedule();
    };
    chart.mountPoint.addEventListener("pointerenter", enter);
    chart.mountPoint.addEventListener("pointerleave", leave);
  }

  watch() {
    const seen = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: "120px" });
    const sized = new ResizeObserver(() => {
      for (const chart of this.charts.keys()) chart.resize();
      this.schedule(true);
    });
    for (const chart of this.charts.keys()) seen.observe(chart.figure);
    sized.observe(this.root);
    const themes = onThemeChange(() => {
      for (const chart of this.charts.keys()) chart.recolour();
    });
    const minute = setInterval(() => this.everyMinute(), MINUTE_MS);
    const polled = setInterval(() => this.poll(), POLLED_MS);
    this.endings.push(() => seen.disconnect(), () => sized.disconnect(), themes, () => clearInterval(minute), () => clearInterval(polled));
  }

  /** @param {IntersectionObserverEntry[]} entries */
  seen(entries) {
    const fresh = [];
    for (const chart of this.charts.keys()) {
      const entry = entries.findLast((one) => one.target === chart.figure);
      if (entry === undefined) continue;
      chart.isVisible = entry.isIntersecting;
      if (entry.isIntersecting && chart.figure.dataset.state === "loading") fresh.push(chart);
    }
    if (fresh.length > 0) this.fetch(fresh);
    this.schedule();
  }

  // --- data ---------------------------------------------------------------------------------------------------------

  /** Fetch charts; requests of one moment become one. @param {Iterable<Chart>} charts */
  fetch(charts) {
    for (const chart of charts) this.wanted.add(chart);
    clearTimeout(this.fetchTimer);
    this.fetchTimer = window.setTimeout(() => this.load(), 0);
  }

  /** Everything on the screen again; what is off it when it comes back. */
  refetch() {
    const visible = [];
    for (const chart of this.charts.keys()) {
      if (chart.isVisible) visible.push(chart);
      else chart.figure.dataset.state = "loading";
    }
    this.fetch(visible);
  }

  async load() {
    const charts = [...this.wanted];
    if (charts.length === 0) return;
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    const range = this.time.current();
    const metrics = charts.flatMap((chart) => chart.metrics);
    const points = pointsFor(range.to - range.from);
    try {
      const result = await fetchSeries(this.config.urls, metrics, range, points, request.signal);
      for (const chart of charts) {
        this.wanted.delete(chart);
        chart.load(result, this.config.intervalSeconds);
      }
      this.fetchedAt = Date.now();
    } catch (error) {
      if (request.signal.aborted) return;
      for (const chart of charts) {
        this.wanted.delete(chart);
        if (chart.figure.dataset.state !== "ready") chart.figure.dataset.state = "error";
      }
    }
    this.schedule(true);
  }

  /**
   * Take a live frame: readings of GPUs by id, and of the host.
   * @param {import("../live/protocol.js").LiveData} data
   */
  take(data) {
    if (!this.time.isLiveAppended) return;
    for (const [id, entry] of Object.entries(data.gpus ?? {})) this.append(`gpu:${id}`, entry, "");
    for (const [id, entry] of Object.entries(data.host ?? {})) this.append(`server:${id}`, entry, HOST_PREFIX);
    this.schedule();
  }

  /** @param {string} subject @param {Record<string, any>} entry @param {string} prefix */
  append(subject, entry, prefix) {
    const at = Date.parse(entry.at ?? "") / 1000;
    if (Number.isNaN(at)) return;
    for (const chart of this.charts.keys()) {
      if (chart.figure.dataset.state === "loading") continue;
      chart.append(subject, at, (metric) => (metric.startsWith(prefix) ? entry[metric.slice(prefix.length)] : undefined));
    }
  }

  /** The sentences beside the charts, in the words of the panel, for what is shown now. */
  async fetchSummaries() {
    const { from, to } = this.time.current();
    const query = this.time.isSliding ? location.search : `?${new URLSearchParams({ from: String(from), to: String(to) })}`;
    try {
      const response = await fetch(`${this.config.summariesUrl}${query}`);
      if (!response.ok) return;
      for (const [id, sentence] of Object.entries(await response.json())) {
        const element = this.root.querySelector(`[data-chart="${CSS.escape(id)}"] .chart-summary`);
        if (element !== null) element.textContent = String(sentence);
      }
    } catch {
      // The older sentence names its time; a later one comes within a minute.
    }
  }

  /** The marks again, with the sentences that the panel writes for them. */
  async fetchMarkers() {
    try {
      const query = new URLSearchParams(location.search);
      query.set("part", "markers");
      const response = await fetch(`${location.pathname}?${query}`);
      if (response.ok) this.markers.replace((await response.json()).markers);
      this.schedule(true);
    } catch {
      // They come with the next event, or with the page.
    }
  }

  poll() {
    const isShort = this.config.to - this.config.from <= POLLED_SECONDS;
    if (!this.config.isPolled || !isShort || this.isPaused || !this.time.isSliding || document.hidden) return;
    this.refetch();
  }

  everyMinute() {
    if (this.isPaused || !this.time.isSliding || document.hidden) return;
    this.fetchSummaries();
    const isOld = Date.now() - this.fetchedAt >= REFETCH_MS;
    if (!this.time.isLiveAppended || this.config.isPolled || isOld) this.refetch();
  }

  // --- drawing ------------------------------------------------------------------------------------------------------

  /** Draw in the next frame. @param {boolean} [isForced] even without a change, or under the pointer */
  schedule(isForced = false) {
    if (!isForced && (this.isHeld || this.isPaused)) return;
    if (!isForced && this.isCalm && Date.now() - this.drawnAt < CALM_MS) return;
    this.isForced ||= isForced;
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    this.drawnAt = Date.now();
    for (const chart of this.charts.keys()) {
      if (this.reader.isTable(chart)) continue;
      chart.draw(this.isForced || this.time.isSliding);
      if (chart.isVisible) this.markers.place(chart);
    }
    this.isForced = false;
  }

  window() {
    return this.time.current();
  }

  /** @param {Chart} chart @param {number | null} index */
  pointed(chart, index) {
    if (chart.mountPoint.matches(":hover")) this.reader.show(chart, index);
  }

  // --- zoom and pause -----------------------------------------------------------------------------------------------

  /** @param {number} from @param {number} to */
  zoom(from, to) {
    this.time.zoom(from, to);
    this.moved();
  }

  unzoom() {
    if (this.time.unzoom()) this.moved();
  }

  moved() {
    this.root.toggleAttribute("data-zoomed", this.time.zoomed !== null);
    this.root.dispatchEvent(new CustomEvent("board:moved", { detail: this.time.zoomed }));
    this.schedule(true);
    this.refetch();
    this.fetchSummaries();
  }

  /** @param {boolean} isPaused */
  pause(isPaused) {
    this.isPaused = isPaused;
  }

  /** @param {Set<string>} subjects */
  hide(subjects) {
    for (const chart of this.charts.keys()) chart.hide(subjects);
  }

  /** @param {string | null} subject */
  focus(subject) {
    for (const chart of this.charts.keys()) chart.focus(subject);
  }

  destroy() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.fetchTimer);
    this.request?.abort();
    for (const end of this.endings) end();
    this.reader.destroy();
    for (const chart of this.charts.keys()) chart.unmount();
  }
}
