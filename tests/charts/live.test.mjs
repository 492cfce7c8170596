// The live client against a socket, clock and timers of the test's own.
import assert from "node:assert/strict";
import test from "node:test";

import { reconnectDelay } from "../../frontend/static/js/live/backoff.js";
import { LiveClient } from "../../frontend/static/js/live/client.js";
import { TopicCursor, merge } from "../../frontend/static/js/live/protocol.js";
import { statusOf } from "../../frontend/static/js/live/status.js";

class FakeSocket {
  sent = [];
  send(text) {
    this.sent.push(JSON.parse(text));
  }
  close() {
    this.isClosed = true;
  }
  says(message) {
    this.onmessage({ data: JSON.stringify(message) });
  }
}

class Outside {
  time = 1_000_000;
  timers = [];
  sockets = [];
  polls = [];
  frames = [];
  random = () => 0;
  now = () => this.time;
  open = () => {
    this.sockets.push(new FakeSocket());
    return this.sockets.at(-1);
  };
  poll = async (topics) => {
    this.polls.push(topics);
    if (this.pollError) throw this.pollError;
    return this.frames;
  };
  setTimer = (callback, ms) => {
    const timer = { callback, at: this.time + ms };
    this.timers.push(timer);
    return timer;
  };
  clearTimer = (timer) => {
    this.timers = this.timers.filter((one) => one !== timer);
  };
  get socket() {
    return this.sockets.at(-1);
  }
  async advance(ms) {
    const end = this.time + ms;
    for (;;) {
      const due = this.timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.clearTimer(due);
      this.time = due.at;
      due.callback();
      await Promise.resolve();
    }
    this.time = end;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function opened(topics = ["fleet"]) {
  const outside = new Outside();
  const live = new LiveClient(outside);
  const seen = [];
  const endings = topics.map((topic) =>
    live.subscribe(topic, {
      onSnapshot: (frame) => seen.push(["snapshot", frame.topic, frame.data, frame.isResync]),
      onDelta: (frame) => seen.push(["delta", frame.topic, frame.data]),
    }),
  );
  outside.socket.onopen();
  return { outside, live, seen, endings };
}

const snapshot = (seq, topic = "fleet", data = {}) => ({ type: "snapshot", topic, seq, at: "2026-03-10T06:00:00Z", data });
const delta = (from, seq, topic = "fleet", data = {}) => ({ type: "delta", topic, from, seq, at: "2026-03-10T06:00:01Z", data });

test("a snapshot, then deltas in order, reach the subscriber", () => {
  const { outside, seen } = opened();
  assert.deepEqual(outside.socket.sent, [{ type: "subscribe", topics: ["fleet"] }]);
  outside.socket.says(snapshot(4, "fleet", { gpus: { 1: { a: 1 } } }));
  outside.socket.says(delta(5, 5));
  outside.socket.says(delta(6, 9));
  assert.deepEqual(seen.map(([kind]) => kind), ["snapshot", "delta", "delta"]);
});

test("a gap in the numbers asks for a fresh snapshot and holds deltas back until it is there", () => {
  const { outside, seen } = opened();
  outside.socket.says(snapshot(4));
  outside.socket.says(delta(6, 6));
  assert.deepEqual(outside.socket.sent.slice(1).map((one) => one.type), ["unsubscribe", "subscribe"]);
  outside.socket.says(delta(7, 7));
  assert.equal(seen.length, 1);
  outside.socket.says(snapshot(7));
  outside.socket.says(delta(8, 8));
  assert.deepEqual(seen.map(([kind, , , isResync]) => [kind, isResync]), [["snapshot", false], ["snapshot", true], ["delta", undefined]]);
});

test("a delta that a snapshot already contains is left out, one that overlaps it is taken", () => {
  const cursor = new TopicCursor();
  assert.equal(cursor.take({ type: "delta", seq: 1 }), "ignore");
  assert.equal(cursor.take({ type: "snapshot", seq: 10 }), "snapshot");
  assert.equal(cursor.take({ type: "delta", from: 9, seq: 10 }), "ignore");
  assert.equal(cursor.take({ type: "delta", from: 9, seq: 11 }), "apply");
  assert.equal(cursor.take({ type: "delta", seq: 13 }), "gap");
  assert.equal(cursor.take({ type: "delta", seq: 14 }), "ignore");
});

test("newest values win key by key when data is merged", () => {
  assert.deepEqual(merge({ gpus: { 1: { a: 1 }, 2: { a: 2 } } }, { gpus: { 2: { a: 3 } }, servers: { 5: {} } }), {
    gpus: { 1: { a: 1 }, 2: { a: 3 } },
    servers: { 5: {} },
  });
});

test("a lost connection counts its attempts, comes back, and subscribes to everything again", async () => {
  const { outside, live, seen } = opened(["fleet", "server.3"]);
  outside.socket.says(snapshot(1));
  assert.equal(live.state.name, "live");
  outside.socket.onclose({ code: 1006 });
  assert.deepEqual([live.state.name, live.state.attempt], ["reconnecting", 1]);
  await outside.advance(300);
  outside.socket.onclose({ code: 1006 });
  assert.deepEqual([live.state.name, live.state.attempt], ["reconnecting", 2]);
  await outside.advance(600);
  assert.equal(outside.sockets.length, 3);
  outside.socket.onopen();
  assert.deepEqual(outside.socket.sent, [{ type: "subscribe", topics: ["fleet", "server.3"] }]);
  outside.socket.says(snapshot(1));
  assert.equal(live.state.name, "live");
  assert.equal(seen.at(-1)[3], true);
});

test("a panel that is away for ten seconds is found again within ten more", () => {
  let waited = 0;
  let attempts = 0;
  while (waited < 10_000) waited += reconnectDelay((attempts += 1), () => 1);
  assert.ok(waited < 20_000, `${waited} ms after ${attempts} attempts`);
  assert.ok(reconnectDelay(1, () => 0) >= 250);
  assert.equal(reconnectDelay(100, () => 1), 15_000);
});

test("a socket that stays open and brings nothing is stale after 30 s and replaced after 45", async () => {
  const { outside, live } = opened();
  outside.socket.says({ type: "heartbeat", at: "" });
  const states = [];
  live.addEventListener("state", (event) => states.push(event.detail));
  await outside.advance(32_000);
  assert.equal(live.state.name, "stale");
  assert.equal(live.state.staleSeconds, 32);
  assert.equal(states.at(-1).staleSeconds, 32);
  await outside.advance(15_000);
  assert.equal(outside.sockets[0].isClosed, true);
  assert.equal(outside.sockets.length, 2);
  outside.socket.onopen();
  outside.socket.says(snapshot(1));
  assert.equal(live.state.name, "live");
});

test("heartbeats alone keep it live", async () => {
  const { outside, live } = opened();
  for (let beat = 0; beat < 10; beat += 1) {
    outside.socket.says({ type: "heartbeat", at: "" });
    await outside.advance(20_000);
  }
  assert.equal(live.state.name, "live");
  assert.equal(outside.sockets.length, 1);
});

test("a pause stops delivery and one snapshot per topic comes on return", () => {
  const { outside, live, seen } = opened();
  outside.socket.says(snapshot(1));
  live.toggle();
  assert.equal(live.state.name, "paused");
  outside.socket.says(delta(2, 2));
  assert.equal(seen.length, 1);
  live.pause("hidden");
  live.toggle();
  assert.equal(live.state.name, "paused", "still hidden");
  live.resume("hidden");
  const types = outside.socket.sent.map((one) => one.type);
  assert.deepEqual(types, ["subscribe", "unsubscribe", "subscribe"]);
  outside.socket.says(snapshot(5));
  assert.deepEqual(seen.at(-1).slice(0, 2), ["snapshot", "fleet"]);
  assert.equal(seen.at(-1)[3], true);
});

test("a page that was opened in a hidden tab subscribes when it is first seen", () => {
  const outside = new Outside();
  const live = new LiveClient(outside);
  live.pause("hidden");
  live.subscribe("fleet", {});
  outside.socket.onopen();
  assert.deepEqual(outside.socket.sent, []);
  live.resume("hidden");
  assert.deepEqual(outside.socket.sent, [{ type: "subscribe", topics: ["fleet"] }]);
});

test("logging out elsewhere ends it for good and says so", async () => {
  const { outside, live } = opened();
  outside.socket.says({ type: "closing", reason: "logged_out" });
  outside.socket.onclose({ code: 4401 });
  assert.deepEqual([live.state.name, live.state.reason], ["ended", "logged_out"]);
  await outside.advance(120_000);
  assert.equal(outside.sockets.length, 1);
});

test("a server error closes the socket and is followed by a new attempt", async () => {
  const { outside, live } = opened();
  outside.socket.says({ type: "closing", reason: "error" });
  outside.socket.onclose({ code: 1011 });
  assert.equal(live.state.name, "reconnecting");
  await outside.advance(1_000);
  assert.equal(outside.sockets.length, 2);
});

test("a refused topic is reported and not asked for again on this connection", async () => {
  const { outside, live } = opened(["fleet", "server.99"]);
  const refusals = [];
  live.addEventListener("refused", (event) => refusals.push(event.detail.topic));
  outside.socket.says({ type: "refused", topic: "server.99", reason: "gone" });
  live.toggle();
  live.toggle();
  assert.deepEqual(refusals, ["server.99"]);
  assert.deepEqual(outside.socket.sent.at(-1), { type: "subscribe", topics: ["fleet"] });
});

test("where sockets never open, snapshots are polled every 15 s until one opens", async () => {
  const outside = new Outside();
  const live = new LiveClient(outside);
  const seen = [];
  live.subscribe("fleet", { onSnapshot: (frame) => seen.push(frame.data) });
  outside.frames = [snapshot(0, "fleet", { gpus: {} })];
  for (let attempt = 0; attempt < 3; attempt += 1) {
    outside.socket.onclose({ code: 1006 });
    await outside.advance(2_500);
  }
  assert.deepEqual(outside.polls[0], ["fleet"]);
  assert.deepEqual([live.state.name, live.state.polling], ["live", true]);
  await outside.advance(15_000);
  assert.equal(outside.polls.length, 2);
  assert.equal(seen.length, 2);
  outside.socket.onopen();
  await outside.advance(60_000);
  assert.equal(outside.polls.length, 2);
});

test("a panel that is away is reconnected to and not said to be polled", async () => {
  const { outside, live } = opened();
  outside.socket.says(snapshot(1));
  outside.pollError = new TypeError("Failed to fetch");
  for (let attempt = 0; attempt < 4; attempt += 1) {
    outside.socket.onclose({ code: 1006 });
    await outside.advance(2_500);
  }
  assert.ok(outside.polls.length > 0);
  assert.deepEqual([live.state.name, live.state.polling], ["reconnecting", false]);
  outside.pollError = undefined;
  outside.frames = [snapshot(0)];
  await outside.advance(15_000);
  assert.deepEqual([live.state.name, live.state.polling], ["live", true]);
  outside.socket.onopen();
  outside.socket.says(snapshot(1));
  assert.deepEqual([live.state.name, live.state.polling], ["live", false]);
});

test("a poll that meets the log-in page ends it", async () => {
  const outside = new Outside();
  const live = new LiveClient(outside);
  live.subscribe("fleet", {});
  outside.pollError = { ended: "logged_out" };
  for (let attempt = 0; attempt < 3; attempt += 1) {
    outside.socket.onclose({ code: 1006 });
    await outside.advance(2_500);
  }
  assert.deepEqual([live.state.name, live.state.reason], ["ended", "logged_out"]);
});

test("the last subscriber of a topic unsubscribes; a second one gets a snapshot of its own", () => {
  const { outside, live, endings } = opened();
  outside.socket.says(snapshot(3));
  const end = live.subscribe("fleet", {});
  assert.deepEqual(outside.socket.sent.slice(1).map((one) => one.type), ["unsubscribe", "subscribe"]);
  endings[0]();
  assert.equal(outside.socket.sent.length, 3);
  end();
  assert.deepEqual(outside.socket.sent.at(-1), { type: "unsubscribe", topics: ["fleet"] });
});

test("the word follows the facts", () => {
  const base = { ended: null, paused: false, connected: true, polling: false, attempt: 0, lastAt: 0, since: 0, now: 0 };
  const name = (facts) => statusOf({ ...base, ...facts }).name;
  assert.equal(name({}), "live");
  assert.equal(name({ lastAt: null }), "reconnecting");
  assert.equal(name({ connected: false, attempt: 2 }), "reconnecting");
  assert.equal(name({ connected: false, attempt: 9, now: 42_000 }), "stale");
  assert.equal(name({ paused: true, now: 42_000 }), "paused");
  assert.equal(name({ connected: false, polling: true, now: 42_000 }), "live");
  assert.equal(name({ ended: "logged_out", paused: true }), "ended");
});
