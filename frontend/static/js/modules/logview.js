// @ts-check
/** The log of a replica: follows what comes, pauses when somebody scrolls up, filters lines while one types, wraps or not. */
import { el } from "../dom.js";
import { dateTime } from "../format.js";
import { live } from "../live.js";
import { hasText, LogPieces, MOST_LINES } from "../log_lines.js";

/** @param {HTMLElement} root */
export function mount(root) {
  const view = /** @type {HTMLElement | null} */ (root.querySelector("[data-log]"));
  const follow = /** @type {HTMLElement | null} */ (root.querySelector("[data-log-follow]"));
  const wrap = /** @type {HTMLElement | null} */ (root.querySelector("[data-log-wrap]"));
  const search = /** @type {HTMLInputElement | null} */ (root.querySelector("input[type=search]"));
  if (view === null || follow === null || wrap === null || search === null) return undefined;
  const topic = root.dataset.topic ?? "";
  const pieces = new LogPieces(Number(root.dataset.generation ?? 0), Number(root.dataset.shown ?? -1));
  const isFollowing = () => follow.getAttribute("aria-pressed") === "true";
  const toEnd = () => { if (isFollowing()) view.scrollTop = view.scrollHeight; };
  wrap.hidden = false;
  follow.hidden = topic === "";

  const filter = () => {
    for (const line of /** @type {Iterable<HTMLElement>} */ (view.children)) line.hidden = !hasText(line.textContent ?? "", search.value);
    toEnd();
  };
  const onWrap = () => {
    const isOn = wrap.getAttribute("aria-pressed") !== "true";
    wrap.setAttribute("aria-pressed", String(isOn));
    view.classList.toggle("is-unwrapped", !isOn);
  };
  const onFollow = () => {
    follow.setAttribute("aria-pressed", String(!isFollowing()));
    toEnd();
  };
  const onScroll = () => {
    const isAtEnd = view.scrollHeight - view.scrollTop - view.clientHeight < 24;
    if (topic !== "" && isAtEnd !== isFollowing()) follow.setAttribute("aria-pressed", String(isAtEnd));
  };
  /** @param {import("../live/protocol.js").Frame} frame */
  const take = (frame) => {
    const { lines, isAnew } = pieces.take(frame.data.log ?? {});
    if (isAnew) view.replaceChildren();
    for (const line of lines) {
      const row = el("span", { hidden: !hasText(line, search.value) }, `${line}\n`);
      view.append(row);
    }
    while (view.children.length > MOST_LINES) view.firstElementChild?.remove();
    if (lines.length === 0) return;
    root.querySelector("[data-log-empty]")?.remove();
    toEnd();
    const time = /** @type {HTMLTimeElement | null} */ (root.querySelector("[data-log-age] time"));
    if (time === null) return;
    time.dateTime = new Date().toISOString();
    time.textContent = dateTime(Date.now());
  };
  search.addEventListener("input", filter);
  wrap.addEventListener("click", onWrap);
  follow.addEventListener("click", onFollow);
  view.addEventListener("scroll", onScroll);
  view.scrollTop = view.scrollHeight;
  const end = topic === "" ? () => {} : live.subscribe(topic, { onSnapshot: take, onDelta: take });
  return () => {
    end();
    search.removeEventListener("input", filter);
    wrap.removeEventListener("click", onWrap);
    follow.removeEventListener("click", onFollow);
    view.removeEventListener("scroll", onScroll);
  };
}
