// The browser's word for a card is the server's word: one table of cases for both.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { gpuActivity } from "../../frontend/static/js/activity.js";
import { heatOf } from "../../frontend/static/js/heat.js";

const cases = JSON.parse(readFileSync(new URL("./activity_cases.json", import.meta.url), "utf8"));

for (const { name, facts, values, activity } of cases) {
  test(name, () => assert.equal(gpuActivity(facts, values), activity));
}

test("a busy card that tells no share is not shaded", () => {
  assert.equal(heatOf("busy", null), "busy");
  assert.equal(heatOf("busy", 0), "1");
  assert.equal(heatOf("busy", 100), "5");
  assert.equal(heatOf("idle", null), "idle");
});
