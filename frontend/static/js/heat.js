// @ts-check
/** Steps of the heat strip and the counts above it, from live entries. Pure. */
import { activityOf } from "./activity.js";

/**
 * "1" to "5" for a busy card, "busy" for one that tells no share (a card cut into MIG slices), else what it does.
 * @param {string} activity
 * @param {number | null | undefined} percent
 */
export function heatOf(activity, percent) {
  if (activity !== "busy") return activity;
  if (percent === null || percent === undefined) return "busy";
  return String(Math.min(5, Math.floor(percent / 20) + 1));
}

/**
 * @typedef {object} FleetCounts
 * @property {number} total
 * @property {number} reporting
 * @property {number} busy
 * @property {number} idle
 * @property {number} parked
 * @property {number} gone
 * @property {number | null} mean over the cards that reported; absent ones count neither as zero nor at all
 */

/**
 * Count what cards do. The rules are those of frontend/attention.py: counts().
 * @param {Iterable<{known: DOMStringMap, entry: Record<string, any>}>} cards
 * @param {number} now ms, by the panel's clock
 * @returns {FleetCounts}
 */
export function countCards(cards, now) {
  const counts = { total: 0, reporting: 0, busy: 0, idle: 0, parked: 0, gone: 0, mean: /** @type {number | null} */ (null) };
  let sum = 0;
  let readings = 0;
  for (const { known, entry } of cards) {
    const activity = activityOf(known, entry, now);
    counts.total += 1;
    if (activity === "missing" || activity === "lost") counts.gone += 1;
    if (["missing", "lost", "no_data"].includes(activity)) continue;
    counts.reporting += 1;
    if (activity === "busy") counts.busy += 1;
    if (activity === "idle") counts.idle += 1;
    if (activity === "parked" || activity === "ghost") counts.parked += 1;
    const percent = entry.utilization_percent;
    if (percent === null || percent === undefined) continue;
    sum += percent;
    readings += 1;
  }
  if (readings > 0) counts.mean = sum / readings;
  return counts;
}

/**
 * What a server's row says of all its cards.
 * @param {Iterable<{known: DOMStringMap, entry: Record<string, any>}>} cards
 * @param {number} now
 */
export function sumCards(cards, now) {
  const sums = {
    busy: 0,
    memory: /** @type {number | null} */ (null),
    power: /** @type {number | null} */ (null),
    temperature: /** @type {number | null} */ (null),
  };
  for (const { known, entry } of cards) {
    const activity = activityOf(known, entry, now);
    if (["missing", "lost", "no_data"].includes(activity)) continue;
    if (activity === "busy") sums.busy += 1;
    sums.memory = plus(sums.memory, entry.memory_used_bytes);
    sums.power = plus(sums.power, entry.power_watts);
    sums.temperature = Math.max(sums.temperature ?? -Infinity, entry.temperature_celsius ?? -Infinity);
  }
  if (sums.temperature === -Infinity) sums.temperature = null;
  return sums;
}

/** @param {number | null} sum @param {number | null | undefined} value */
function plus(sum, value) {
  return value === null || value === undefined ? sum : (sum ?? 0) + value;
}
