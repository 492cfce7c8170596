// @ts-check
/** The word that the page shows for its connection, as a pure function of what is known. */

/** The server sends something at least every 20 s; older than this is stale. */
export const STALE_AFTER_MS = 30_000;
/** A poll comes every 15 s. */
export const POLL_STALE_AFTER_MS = 45_000;

/**
 * @typedef {object} Facts
 * @property {string | null} ended why no further attempt is made ("logged_out", …)
 * @property {boolean} paused
 * @property {boolean} connected
 * @property {boolean} polling
 * @property {number} attempt attempts since the connection was lost
 * @property {number | null} lastAt when the server last said something, ms
 * @property {number} since when the client was started, ms
 * @property {number} now ms
 */

/**
 * @typedef {object} Status
 * @property {"live" | "paused" | "reconnecting" | "stale" | "ended"} name
 * @property {number} attempt 0 while the first connection is being made
 * @property {number} staleSeconds
 * @property {boolean} polling
 * @property {string | null} reason
 */

/**
 * @param {Facts} facts
 * @returns {Status}
 */
export function statusOf(facts) {
  const age = facts.now - (facts.lastAt ?? facts.since);
  const limit = facts.polling ? POLL_STALE_AFTER_MS : STALE_AFTER_MS;
  return {
    name: nameOf(facts, age, limit),
    attempt: facts.attempt,
    staleSeconds: Math.max(0, Math.floor(age / 1000)),
    polling: facts.polling,
    reason: facts.ended,
  };
}

/**
 * @param {Facts} facts
 * @param {number} age
 * @param {number} limit
 * @returns {Status["name"]}
 */
function nameOf(facts, age, limit) {
  if (facts.ended !== null) return "ended";
  if (facts.paused) return "paused";
  if (age > limit) return "stale";
  const hears = facts.lastAt !== null && (facts.connected || facts.polling);
  return hears ? "live" : "reconnecting";
}
