// @ts-check
/** What a GPU is doing, in one word: the rules of monitoring/activity.py, for readings that arrive live. */

const BUSY_FROM_PERCENT = 3;
const HELD_FROM_SHARE = 0.02;
const LEAST_FRESH_SECONDS = 15;
const WORK = ["utilization_percent", "sm_activity_percent"];
const ENGINES = ["encoder_percent", "decoder_percent"];

/**
 * @typedef {object} CardFacts
 * @property {string} state
 * @property {number | null} memory_total_bytes
 * @property {number | null} processes null when they are not visible
 * @property {boolean} is_fresh
 */

/**
 * @param {CardFacts} facts
 * @param {Record<string, number | null | undefined>} values
 * @returns {string} a value of monitoring.activity.Activity
 */
export function gpuActivity(facts, values) {
  if (facts.state === "missing" || facts.state === "lost") return facts.state;
  if (!facts.is_fresh || facts.state === "unknown") return "no_data";
  const work = WORK.map((name) => values[name]).filter((value) => value !== null && value !== undefined);
  if (work.some((value) => Number(value) >= BUSY_FROM_PERCENT) || ENGINES.some((name) => (values[name] ?? 0) > 0)) return "busy";
  if (work.length === 0) return "cannot_tell";
  return quiet(facts, values.memory_used_bytes ?? null);
}

/** @param {CardFacts} facts @param {number | null} used */
function quiet(facts, used) {
  if (facts.processes) return "parked";
  const share = used === null || !facts.memory_total_bytes ? null : used / facts.memory_total_bytes;
  if (share === null) return facts.processes === 0 ? "idle" : "cannot_tell";
  if (share < HELD_FROM_SHARE) return "idle";
  return facts.processes === 0 ? "ghost" : "parked";
}

/**
 * The same from what a page's element knows of a card (its data attributes) and what frames said of it since.
 * @param {DOMStringMap} known
 * @param {Record<string, any>} entry
 * @param {number} now ms, by the panel's clock
 */
export function activityOf(known, entry, now) {
  const at = Date.parse(entry.at ?? known.at ?? "");
  const limit = Math.max(3 * Number(known.interval || 5), LEAST_FRESH_SECONDS) * 1000;
  const facts = {
    state: entry.state ?? known.state ?? "unknown",
    memory_total_bytes: Number(known.total) || null,
    processes: known.processes === undefined || known.processes === "" ? null : Number(known.processes),
    is_fresh: !Number.isNaN(at) && now - at <= limit,
  };
  return gpuActivity(facts, entry);
}
