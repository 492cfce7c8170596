// Endpoints live: what a page compares with a frame, sums over engines, and pieces of a log that come twice or out of order.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { knownOf, sumOf, waitingIn } from "../../frontend/static/js/endpoint_frames.js";
import { hasLevel, hasText, levelOf, LogPieces } from "../../frontend/static/js/log_lines.js";

const cases = JSON.parse(readFileSync(new URL("./endpoint_cases.json", import.meta.url), "utf8"));

test("a frame is compared by the same text as the server wrote into the page", () => {
  for (const each of cases) assert.equal(knownOf(each.endpoint, each.replicas), each.known);
});

test("figures that move do not count as another state", () => {
  const [, { endpoint, replicas, known }] = cases;
  const moved = { ...replicas, 12: { ...replicas["12"], waiting: 40, running: 3 } };
  assert.equal(knownOf(endpoint, moved), known);
});

test("a sum is missing only when nobody tells a part of it", () => {
  assert.equal(sumOf([]), null);
  assert.equal(sumOf([null, null]), null);
  assert.equal(sumOf([null, 2, 0]), 2);
});

test("a frame without replicas says nothing of what waits", () => {
  assert.equal(waitingIn({ latency: {} }), undefined);
  assert.equal(waitingIn({ replicas: {} }), null);
  assert.equal(waitingIn({ replicas: { 1: { waiting: 2 }, 2: { waiting: null } } }), 2);
});

const line = (text, at = null) => ({ text, at });

test("pieces of a log are shown once and in the order of their offsets", () => {
  const pieces = new LogPieces(1, 10);
  const frame = { "1:30": { text: "three\n", skipped: 0 }, "1:10": { text: "one\n", skipped: 0 }, "1:20": { text: "two\nand\n", skipped: 5, at: "T2" } };
  assert.deepEqual(pieces.take(frame), { lines: [line("… 5 bytes …"), line("two", "T2"), line("and", "T2"), line("three")], isAnew: false });
  assert.deepEqual(pieces.take(frame), { lines: [], isAnew: false });
});

test("a new start of the engine begins an empty log, and late lines of the old one are left out", () => {
  const pieces = new LogPieces(1, -1);
  pieces.take({ "1:0": { text: "old\n", skipped: 0 } });
  const anew = pieces.take({ "1:4": { text: "older\n", skipped: 0 }, "2:0": { text: "new\n", skipped: 0 } });
  assert.deepEqual(anew, { lines: [line("new")], isAnew: true });
  assert.deepEqual(pieces.take({ "1:9": { text: "late\n", skipped: 0 } }), { lines: [], isAnew: false });
});

test("lines are found whatever their case, and every line without a search", () => {
  assert.ok(hasText("CUDA out of memory", "cuda OUT"));
  assert.ok(hasText("anything", ""));
  assert.ok(!hasText("INFO", "error"));
});

test("how grave a line is follows from how engines mark lines, as on the server", () => {
  const cases = JSON.parse(readFileSync(new URL("log_cases.json", import.meta.url), "utf8"));
  for (const each of cases) assert.equal(levelOf(each.line, each.before), each.level, each.line);
});

test("a level shows itself and what is graver", () => {
  const shown = (wanted) => ["", "warning", "error"].filter((level) => hasLevel(level, wanted));
  assert.deepEqual([shown(""), shown("warning"), shown("error")], [["", "warning", "error"], ["warning", "error"], ["error"]]);
});
