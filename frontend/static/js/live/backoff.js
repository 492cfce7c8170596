// @ts-check
/** How long to wait before the next attempt to connect. */

const FIRST_MS = 500;
const PATIENT_AFTER = 12;

/**
 * Doubles from half a second to five seconds, so that a panel that restarts is found again within ten; after a dozen
 * attempts every fifteen seconds. The jitter (the upper half of the wait) keeps many browsers from returning at once.
 * @param {number} attempt 1 for the first one after a loss
 * @param {() => number} [random] 0 ≤ x < 1
 * @returns {number} milliseconds
 */
export function reconnectDelay(attempt, random = Math.random) {
  const cap = attempt > PATIENT_AFTER ? 15_000 : 5_000;
  const wait = Math.min(cap, FIRST_MS * 2 ** Math.max(0, attempt - 1));
  return Math.round(wait / 2 + (wait / 2) * random());
}
