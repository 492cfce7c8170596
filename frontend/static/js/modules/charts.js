// @ts-check
/** Charts of a page: reads the configuration in the page, follows the live topic, keeps the legend and the address. */
import { Board } from "../charts/board.js";
import { isOutdated } from "../charts/outdated.js";
import { live } from "../live.js";

/** Cards of one machine come together. */
const SETTLE_MS = 1_500;
const AT_MOST_EVERY_MS = 10_000;
/** When the charts were made anew last: should they lack something even then, they are not fetched in a loop. */
let renewedAt = -Infinity;

/** @param {HTMLElement} root */
export function mount(root) {
  const board = new Board(root, JSON.parse(root.dataset.config ?? "{}"));
  const endings = [followLive(board), renewal(board), legend(root, board), zoomControls(root, board)];
  return () => {
    for (const end of endings) end();
    board.destroy();
  };
}

/** @param {Board} board */
function followLive(board) {
  const changed = () => board.pause(live.state.name === "paused");
  live.addEventListener("state", changed);
  const end = live.subscribe(board.config.topic, {
    onSnapshot: (frame) => {
      if (frame.isResync && board.time.isSliding) board.refetch();
      board.take(frame.data);
    },
    onDelta: (frame) => board.take(frame.data),
  });
  const endEvents = live.subscribe("events", {
    onDelta: (frame) => {
      if (Object.values(frame.data.events ?? {}).some((event) => concerns(board, event))) board.fetchMarkers();
    },
  });
  return () => {
    live.removeEventListener("state", changed);
    end();
    endEvents();
  };
}

/** A machine that has just joined gets its cards, and its memory, after the page was made: fetch the charts anew. @param {Board} board */
function renewal(board) {
  let timer = 0;
  const renew = () => {
    timer = 0;
    if (live.state.name === "paused") return; // the snapshot on return tells it again
    renewedAt = performance.now();
    const query = new URLSearchParams(location.search);
    query.set("part", "charts");
    htmx.ajax("GET", `${location.pathname}?${query}`, { target: board.root, swap: "outerHTML" });
  };
  /** @param {import("../live/protocol.js").Frame} frame */
  const look = (frame) => {
    if (timer !== 0 || !isOutdated(board.config.known, frame.data)) return;
    timer = window.setTimeout(renew, Math.max(SETTLE_MS, renewedAt + AT_MOST_EVERY_MS - performance.now()));
  };
  const end = live.subscribe(board.config.topic, { onSnapshot: look, onDelta: look });
  return () => {
    clearTimeout(timer);
    end();
  };
}

/**
 * Whether an event is about what this page shows.
 * @param {Board} board
 * @param {Record<string, any>} event
 */
function concerns(board, event) {
  return `server.${event.server_id}` === board.config.topic || `${event.subject_kind}.${event.subject_id}` === board.config.topic;
}

/** @param {HTMLElement} root @param {Board} board */
function legend(root, board) {
  const buttons = /** @type {HTMLElement[]} */ ([...root.querySelectorAll("[data-legend]")]);
  /** @type {Set<string>} */
  const hidden = new Set();
  for (const button of buttons) {
    const subject = button.dataset.legend ?? "";
    button.addEventListener("click", () => {
      if (!hidden.delete(subject)) hidden.add(subject);
      button.setAttribute("aria-pressed", String(!hidden.has(subject)));
      board.hide(hidden);
    });
    button.addEventListener("pointerenter", () => board.focus(subject));
    button.addEventListener("pointerleave", () => board.focus(null));
    button.addEventListener("focus", () => board.focus(subject));
    button.addEventListener("blur", () => board.focus(null));
  }
  return () => {};
}

/** The zoom stands in the address, so that what is seen can be sent. @param {HTMLElement} root @param {Board} board */
function zoomControls(root, board) {
  const reset = root.querySelector("[data-zoom-reset]");
  const clicked = () => board.unzoom();
  const moved = (/** @type {Event} */ event) => {
    const zoomed = /** @type {CustomEvent} */ (event).detail;
    const url = new URL(location.href);
    if (zoomed === null) {
      url.search = board.root.dataset.search ?? "";
    } else {
      url.searchParams.delete("range");
      url.searchParams.set("from", new Date(zoomed.from * 1000).toISOString());
      url.searchParams.set("to", new Date(zoomed.to * 1000).toISOString());
    }
    history.replaceState(history.state, "", url);
  };
  root.dataset.search = location.search;
  reset?.addEventListener("click", clicked);
  root.addEventListener("board:moved", moved);
  return () => {
    reset?.removeEventListener("click", clicked);
    root.removeEventListener("board:moved", moved);
  };
}
