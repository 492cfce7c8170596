// The browser's word for a card is the server's word: one table of cases for both.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { gpuActivity } from "../../frontend/static/js/activity.js";

const cases = JSON.parse(readFileSync(new URL("./activity_cases.json", import.meta.url), "utf8"));

for (const { name, facts, values, activity } of cases) {
  test(name, () => assert.equal(gpuActivity(facts, values), activity));
}
