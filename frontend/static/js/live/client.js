// @ts-check
/**
 * The live client of a page: one socket, topics subscribed one by one, a fresh snapshot after every gap.
 *
 * Everything from outside (socket, clock, timers, polling) is handed in, so that the tests drive it without a browser.
 * Events: `state` (detail: Status) whenever the word changes, one named after the word (`live`, `paused`,
 * `reconnecting`, `stale`, `ended`), and `refused` (detail: {topic, reason}).
 */
import { reconnectDelay } from "./backoff.js";
import { TopicCursor } from "./protocol.js";
import { statusOf } from "./status.js";

const TICK_MS = 1_000;
const WATCHDOG_MS = 45_000;
const POLL_MS = 15_000;
const BLOCKED_AFTER = 3;
const ENDING_CODES = new Map([
  [4401, "logged_out"],
  [4403, "forbidden"],
]);
const ENDING_REASONS = new Set(ENDING_CODES.values());

/**
 * @typedef {import("./protocol.js").Frame} Frame
 * @typedef {import("./status.js").Status} Status
 * @typedef {object} Handlers
 * @property {(frame: Frame) => void} [onSnapshot]
 * @property {(frame: Frame) => void} [onDelta]
 * @typedef {object} Topic
 * @property {TopicCursor} cursor
 * @property {Set<Handlers>} handlers
 * @property {boolean} isRefused
 * @typedef {object} Outside
 * @property {() => WebSocket} open
 * @property {(topics: string[]) => Promise<Frame[]>} poll rejects with {ended: reason} when the session is over
 * @property {() => number} now
 * @property {(callback: () => void, ms: number) => any} setTimer
 * @property {(timer: any) => void} clearTimer
 * @property {() => number} [random]
 */

export class LiveClient extends EventTarget {
  /** @param {Outside} outside */
  constructor(outside) {
    super();
    this.outside = outside;
    /** @type {Map<string, Topic>} */
    this.topics = new Map();
    /** @type {Set<string>} why the page does not move: "user", "hidden" */
    this.pauses = new Set();
    /** @type {WebSocket | null} */
    this.socket = null;
    this.connected = false;
    this.polling = false;
    /** Whether the last poll was answered: while the panel is away, none is. */
    this.isPollAnswered = false;
    this.attempt = 0;
    /** Connections in a row that never opened: sockets may be blocked on the way. */
    this.unopened = 0;
    /** @type {number | null} */
    this.lastAt = null;
    /** @type {string | null} */
    this.ended = null;
    this.since = outside.now();
    this.retryTimer = null;
    this.pollTimer = null;
    this.tickTimer = null;
    this.shown = "";
  }

  /** @returns {Status} */
  get state() {
    return statusOf({
      ended: this.ended,
      paused: this.pauses.size > 0,
      connected: this.connected,
      polling: this.polling && this.isPollAnswered,
      attempt: this.attempt,
      lastAt: this.lastAt,
      since: this.since,
      now: this.outside.now(),
    });
  }

  /**
   * Listen to a topic. Snapshots replace what was known; deltas add to it.
   * @param {string} name
   * @param {Handlers} handlers
   * @returns {() => void} ends the subscription
   */
  subscribe(name, handlers) {
    let topic = this.topics.get(name);
    if (topic === undefined) {
      topic = { cursor: new TopicCursor(), handlers: new Set(), isRefused: false };
      this.topics.set(name, topic);
      this.say("subscribe", [name]);
    } else if (topic.cursor.seq !== null) {
      this.refresh(name); // the newcomer needs a snapshot of its own
    }
    topic.handlers.add(handlers);
    this.start();
    return () => this.leave(name, handlers);
  }

  /** @param {string} name @param {Handlers} handlers */
  leave(name, handlers) {
    const topic = this.topics.get(name);
    if (topic === undefined || !topic.handlers.delete(handlers) || topic.handlers.size > 0) return;
    this.topics.delete(name);
    this.say("unsubscribe", [name]);
  }

  /** Connect when there is something to listen to. */
  start() {
    if (this.tickTimer === null) this.tick();
    if (this.socket === null && this.retryTimer === null && this.ended === null) this.connect();
  }

  /** @param {string} reason */
  pause(reason) {
    if (this.pauses.size === 0) this.say("unsubscribe", this.wanted());
    this.pauses.add(reason);
    this.show();
  }

  /** Go on: every topic is fetched afresh once. @param {string} reason */
  resume(reason) {
    if (!this.pauses.delete(reason) || this.pauses.size > 0) return;
    for (const topic of this.topics.values()) topic.cursor.reset();
    this.say("subscribe", this.wanted());
    if (this.polling) this.poll();
    this.show();
  }

  /** The pause button and the space bar. */
  toggle() {
    if (this.pauses.has("user")) this.resume("user");
    else this.pause("user");
  }

  // --- the socket ---------------------------------------------------------------------------------------------------

  connect() {
    this.retryTimer = null;
    const socket = this.outside.open();
    this.socket = socket;
    let wasOpen = false;
    socket.onopen = () => {
      wasOpen = true;
      this.opened();
    };
    socket.onmessage = (message) => this.received(String(message.data));
    socket.onclose = (close) => {
      if (this.socket === socket) this.lost(close.code, wasOpen);
    };
  }

  opened() {
    this.connected = true;
    this.unopened = 0;
    this.stopPolling();
    for (const topic of this.topics.values()) {
      topic.cursor.reset();
      topic.isRefused = false;
    }
    if (this.pauses.size === 0) this.say("subscribe", this.wanted());
    this.show();
  }

  /** @param {number} code @param {boolean} wasOpen */
  lost(code, wasOpen) {
    this.socket = null;
    this.connected = false;
    this.ended ??= ENDING_CODES.get(code) ?? null;
    if (this.ended !== null) {
      this.stopPolling();
    } else {
      this.attempt += 1;
      this.unopened = wasOpen ? 0 : this.unopened + 1;
      if (this.unopened >= BLOCKED_AFTER) this.startPolling();
      this.retryTimer = this.outside.setTimer(() => this.connect(), reconnectDelay(this.attempt, this.outside.random));
    }
    this.show();
  }

  /** @param {"subscribe" | "unsubscribe"} type @param {string[]} topics */
  say(type, topics) {
    if (!this.connected || topics.length === 0) return;
    if (type === "subscribe" && this.pauses.size > 0) return;
    this.socket?.send(JSON.stringify({ type, topics }));
  }

  /** Ask for a fresh snapshot of a topic. @param {string} name */
  refresh(name) {
    this.topics.get(name)?.cursor.reset();
    this.say("unsubscribe", [name]);
    this.say("subscribe", [name]);
  }

  wanted() {
    return [...this.topics].filter(([, topic]) => !topic.isRefused).map(([name]) => name);
  }

  // --- what arrives -------------------------------------------------------------------------------------------------

  /** @param {string} text */
  received(text) {
    const frame = JSON.parse(text);
    this.lastAt = this.outside.now();
    this.attempt = 0;
    if (frame.type === "closing") {
      if (ENDING_REASONS.has(frame.reason)) this.ended = frame.reason;
    } else if (frame.type === "refused") {
      this.refused(frame.topic, frame.reason);
    } else if (frame.type === "snapshot" || frame.type === "delta") {
      this.deliver(frame);
    }
    this.show();
  }

  /** @param {string} name @param {string} reason */
  refused(name, reason) {
    const topic = this.topics.get(name);
    if (topic !== undefined) topic.isRefused = true;
    this.dispatchEvent(new CustomEvent("refused", { detail: { topic: name, reason } }));
  }

  /** @param {Frame} frame */
  deliver(frame) {
    const topic = this.topics.get(frame.topic);
    if (topic === undefined || this.pauses.size > 0) return;
    const verdict = topic.cursor.take(frame);
    if (verdict === "gap") this.refresh(frame.topic);
    if (verdict !== "snapshot" && verdict !== "apply") return;
    frame.isResync = verdict === "snapshot" && topic.cursor.snapshots > 1;
    for (const handlers of [...topic.handlers]) {
      if (verdict === "snapshot") handlers.onSnapshot?.(frame);
      else handlers.onDelta?.(frame);
    }
  }

  // --- polling, where sockets are blocked ---------------------------------------------------------------------------

  startPolling() {
    if (this.polling) return;
    this.polling = true;
    this.poll();
  }

  stopPolling() {
    this.polling = this.isPollAnswered = false;
    if (this.pollTimer !== null) this.outside.clearTimer(this.pollTimer);
    this.pollTimer = null;
  }

  async poll() {
    if (this.pollTimer !== null) this.outside.clearTimer(this.pollTimer);
    this.pollTimer = this.outside.setTimer(() => this.poll(), POLL_MS);
    if (this.pauses.size > 0 || this.topics.size === 0) return;
    try {
      const frames = await this.outside.poll(this.wanted());
      if (!this.polling) return;
      this.isPollAnswered = true;
      this.lastAt = this.outside.now();
      for (const frame of frames) this.deliver(frame);
    } catch (error) {
      this.isPollAnswered = false;
      const reason = /** @type {any} */ (error)?.ended;
      if (reason) this.ended = reason;
    }
    if (this.ended !== null) this.stopPolling();
    this.show();
  }

  // --- the word on the page -----------------------------------------------------------------------------------------

  tick() {
    this.tickTimer = this.outside.setTimer(() => this.tick(), TICK_MS);
    const silent = this.outside.now() - (this.lastAt ?? this.since);
    if (this.connected && silent > WATCHDOG_MS) this.drop();
    this.show();
  }

  /** The socket says that it is open and brings nothing: treat it as lost, whatever closing it takes. */
  drop() {
    const socket = this.socket;
    this.lost(0, true);
    socket?.close();
  }

  show() {
    const state = this.state;
    const word = JSON.stringify([state.name, state.attempt, state.polling, state.name === "stale" && state.staleSeconds]);
    if (word === this.shown) return;
    this.shown = word;
    this.dispatchEvent(new CustomEvent("state", { detail: state }));
    this.dispatchEvent(new CustomEvent(state.name, { detail: state }));
  }
}
