// @ts-check
/** The log of a replica: follows what comes, pauses when somebody scrolls up, filters lines while one types, wraps or not. */
import { el } from "../dom.js";
import { ago, dateTime } from "../format.js";
import { live } from "../live.js";
import { hasLevel, hasText, levelOf, LogPieces, MOST_LINES } from "../log_lines.js";

/** Nearer to the end than this counts as at the end, CSS pixels. */
const AT_END_PX = 24;

/** @param {HTMLElement} root */
export function mount(root) {
  const view = /** @type {HTMLElement | null} */ (root.querySelector("[data-log]"));
  const search = /** @type {HTMLInputElement | null} */ (root.querySelector("input[type=search]"));
  const level = /** @type {HTMLSelectElement | null} */ (root.querySelector("select[name=level]"));
  const follow = toggle(root, "[data-log-follow]");
  if (view === null || search === null || level === null || follow === null) return undefined;
  const topic = root.dataset.topic ?? "";
  const log = new LiveLog(root, view, search, level, follow);
  const wrap = toggle(root, "[data-log-wrap]", (isOn) => view.classList.toggle("is-unwrapped", !isOn));
  const times = toggle(root, "[data-log-times]", (isOn) => view.classList.toggle("is-timeless", !isOn));
  for (const each of [wrap, times]) if (each !== null) each.button.hidden = false;
  follow.button.hidden = topic === "";
  const onFilter = () => log.filter();
  const onScroll = () => { if (topic !== "") log.scrolled(); };
  search.addEventListener("input", onFilter);
  level.addEventListener("change", onFilter);
  follow.button.addEventListener("click", onFilter);
  view.addEventListener("scroll", onScroll);
  view.scrollTop = view.scrollHeight;
  /** @param {import("../live/protocol.js").Frame} frame */
  const take = (frame) => log.take(frame.data.log ?? {});
  const end = topic === "" ? () => {} : live.subscribe(topic, { onSnapshot: take, onDelta: take });
  return () => {
    end();
    for (const each of [follow, wrap, times]) each?.end();
    search.removeEventListener("input", onFilter);
    level.removeEventListener("change", onFilter);
    follow.button.removeEventListener("click", onFilter);
    view.removeEventListener("scroll", onScroll);
  };
}

class LiveLog {
  /** @param {HTMLElement} root @param {HTMLElement} view @param {HTMLInputElement} search @param {HTMLSelectElement} level @param {Toggle} follow */
  constructor(root, view, search, level, follow) {
    [this.root, this.view, this.search, this.level, this.follow] = [root, view, search, level, follow];
    this.pieces = new LogPieces(Number(root.dataset.generation ?? 0), Number(root.dataset.shown ?? -1));
    this.count = /** @type {HTMLElement | null} */ (root.querySelector("[data-log-count]"));
    this.before = /** @type {HTMLElement | null} */ (view.lastElementChild)?.dataset.level ?? "";
    this.unseen = 0;
  }

  /** @param {string} text @param {string} level */
  isShown(text, level) {
    return hasText(text, this.search.value) && hasLevel(level, this.level.value);
  }

  filter() {
    for (const row of /** @type {Iterable<HTMLElement>} */ (this.view.children)) {
      row.hidden = !this.isShown(row.lastElementChild?.textContent ?? "", row.dataset.level ?? "");
    }
    this.settle();
  }

  scrolled() {
    const isAtEnd = this.view.scrollHeight - this.view.scrollTop - this.view.clientHeight < AT_END_PX;
    if (isAtEnd !== this.follow.isOn()) this.follow.set(isAtEnd);
    if (isAtEnd) this.settle();
  }

  /** While followed, the end stays in sight; while paused, what came is counted. */
  settle() {
    if (this.follow.isOn()) {
      this.view.scrollTop = this.view.scrollHeight;
      this.unseen = 0;
    }
    if (this.count === null) return;
    const words = ngettext("%(count)s new line below", "%(count)s new lines below", this.unseen);
    this.count.textContent = this.unseen === 0 ? "" : interpolate(words, { count: this.unseen }, true);
  }

  /** @param {Record<string, {text: string, skipped: number, at?: string}>} log */
  take(log) {
    const { lines, isAnew } = this.pieces.take(log);
    if (isAnew) {
      this.view.replaceChildren();
      this.before = "";
    }
    for (const { text, at } of lines) {
      this.before = levelOf(text, this.before);
      const clock = el("time", {}, at === null ? "" : dateTime(Date.parse(at)).slice(11));
      this.view.append(el("span", { "data-level": this.before || null, hidden: !this.isShown(text, this.before) }, clock, el("span", {}, `${text}\n`)));
    }
    while (this.view.children.length > MOST_LINES) this.view.firstElementChild?.remove();
    if (lines.length === 0) return;
    this.unseen += lines.length;
    const empty = /** @type {HTMLElement | null} */ (this.root.querySelector("[data-log-empty]"));
    if (empty !== null) empty.hidden = true;
    this.settle();
    this.note(lines.at(-1)?.at ?? null);
  }

  /** When the last line came. @param {string | null} at */
  note(at) {
    const age = /** @type {HTMLElement | null} */ (this.root.querySelector("[data-log-age]"));
    const time = age?.querySelector("time");
    if (!age || !time || at === null) return;
    age.hidden = false;
    time.dateTime = at;
    time.textContent = dateTime(Date.parse(at));
    const word = age.querySelector("[data-ago]");
    if (word !== null) word.textContent = ago(Date.parse(at), Date.now());
  }
}

/**
 * @typedef {object} Toggle
 * @property {HTMLElement} button
 * @property {() => boolean} isOn
 * @property {(isOn: boolean) => void} set
 * @property {() => void} end
 */

/**
 * A button that stays pressed.
 * @param {HTMLElement} root @param {string} selector @param {(isOn: boolean) => void} [changed]
 * @returns {Toggle | null}
 */
function toggle(root, selector, changed = () => {}) {
  const button = /** @type {HTMLElement | null} */ (root.querySelector(selector));
  if (button === null) return null;
  const isOn = () => button.getAttribute("aria-pressed") === "true";
  const set = (/** @type {boolean} */ wanted) => {
    button.setAttribute("aria-pressed", String(wanted));
    changed(wanted);
  };
  const onClick = () => set(!isOn());
  button.addEventListener("click", onClick);
  return { button, isOn, set, end: () => button.removeEventListener("click", onClick) };
}
