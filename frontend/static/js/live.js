// @ts-check
/**
 * The page's one live connection: `live.subscribe(topic, {onSnapshot, onDelta})`, `live.state`, `live.toggle()`.
 *
 * Pauses by itself while the tab is hidden and fetches once on return; polls every 15 s where sockets are blocked.
 */
import { el, sprite } from "./dom.js";
import { LiveClient } from "./live/client.js";

const SNAPSHOTS_URL = "/live/snapshots/";

function openSocket() {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  return new WebSocket(`${scheme}//${location.host}/ws/live/`);
}

/**
 * Fetch the snapshots that the socket would have sent.
 * @param {string[]} topics
 * @returns {Promise<import("./live/protocol.js").Frame[]>}
 */
async function pollSnapshots(topics) {
  const query = new URLSearchParams(topics.map((topic) => ["topic", topic]));
  const response = await fetch(`${SNAPSHOTS_URL}?${query}`, { headers: { Accept: "application/json" }, redirect: "manual" });
  if (response.status === 401 || response.type === "opaqueredirect") throw { ended: "logged_out" };
  if (!response.ok) throw new Error(`snapshots: ${response.status}`);
  return (await response.json()).frames;
}

export const live = new LiveClient({
  open: openSocket,
  poll: pollSnapshots,
  now: () => Date.now(),
  setTimer: (callback, ms) => setTimeout(callback, ms),
  clearTimer: (timer) => clearTimeout(timer),
});

/** Tell the word in the top bar. */
function tell() {
  const { name, attempt, staleSeconds, polling, reason } = live.state;
  const state = name === "live" && polling ? "polling" : name;
  document.dispatchEvent(new CustomEvent("fleetdeck:live", { detail: { state, attempt, seconds: staleSeconds, reason } }));
}

/** The session ended elsewhere: nothing here will move again, so say it and offer the way back. */
function sayEnded() {
  const text = live.state.reason === "logged_out" ? gettext("You have been logged out; this page no longer moves.") : gettext("This page no longer moves.");
  const back = `/login/?next=${encodeURIComponent(location.pathname + location.search)}`;
  const link = el("a", { class: "btn btn-s", href: back }, gettext("Log in"));
  const banner = el("div", { class: "banner", "data-tone": "warning", role: "alert" }, sprite("mark", "warning"), el("div", { class: "text" }, text), link);
  document.getElementById("content")?.prepend(banner);
}

live.addEventListener("state", tell);
live.addEventListener("ended", sayEnded);
document.addEventListener("fleetdeck:live-ask", () => live.topics.size > 0 && tell());
document.addEventListener("fleetdeck:live-toggle", () => live.toggle());
if (document.hidden) live.pause("hidden");
document.addEventListener("visibilitychange", () => {
  if (document.hidden) live.pause("hidden");
  else live.resume("hidden");
});
