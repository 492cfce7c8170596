// When charts must be made anew: cards that came after the page, and memory that was not known yet.
import assert from "node:assert/strict";
import test from "node:test";

import { isOutdated } from "../../frontend/static/js/charts/outdated.js";

const known = { gpus: ["1", "2"], memoryLimitBytes: null };
const server = (limit) => ({ server: { 7: { id: 7, memory_limit_bytes: limit } } });

test("readings of known cards leave charts as they are", () => {
  assert.equal(isOutdated(known, { gpus: { 1: { at: "2026-03-10T06:00:00Z" }, 2: { state: "lost" } }, host: { 7: {} }, ...server(null) }), false);
  assert.equal(isOutdated(known, {}), false);
});

test("a card that the charts do not have asks for them anew, one that was forgotten does not", () => {
  assert.equal(isOutdated(known, { gpus: { 3: { state: "ok", removed_at: null } } }), true);
  assert.equal(isOutdated(known, { gpus: { 3: { state: "missing", removed_at: "2026-03-10T06:00:00Z" } } }), false);
});

test("memory that becomes known, or changes, asks for them anew", () => {
  assert.equal(isOutdated(known, server(64)), true);
  assert.equal(isOutdated({ ...known, memoryLimitBytes: 64 }, server(64)), false);
  assert.equal(isOutdated({ ...known, memoryLimitBytes: 64 }, server(32)), true);
  assert.equal(isOutdated({ ...known, memoryLimitBytes: 64 }, { server: { 7: { state: "ready" } } }), false);
});

test("nothing can come to the charts of one card", () => {
  assert.equal(isOutdated(null, { gpus: { 3: { state: "ok" } } }), false);
});
