// @ts-check
/** Whether charts were made before everything that they draw was known: cards of a machine that has just joined, its memory. */

/**
 * @typedef {object} Known
 * @property {string[]} gpus cards and slices, by id
 * @property {number | null} memoryLimitBytes
 */

/**
 * @param {Known | null} known null: nothing can come to these charts
 * @param {import("../live/protocol.js").LiveData} data what a frame says
 */
export function isOutdated(known, data) {
  if (known === null) return false;
  const isOtherCard = Object.entries(data.gpus ?? {}).some(([id, entry]) => !entry.removed_at && !known.gpus.includes(id));
  return isOtherCard || Object.values(data.server ?? {}).some((server) => isOther(known, server.memory_limit_bytes));
}

/** @param {Known} known @param {number | null | undefined} limit */
function isOther(known, limit) {
  return limit !== undefined && limit !== known.memoryLimitBytes;
}
