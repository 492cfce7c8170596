// @ts-check
/** What a frame about an endpoint says, as its page compares and shows it. Pure. */

const HEAD = ["phase", "phase_reason", "desired", "active_revision", "target_revision"];
const ROW = ["id", "state", "wanted", "health", "reason", "restarts"];

/**
 * The state behind the figures, the same text as frontend/serving/detail.py makes of it.
 * @param {Record<string, any>} endpoint
 * @param {Record<string, any>} replicas
 */
export function knownOf(endpoint, replicas) {
  const rollout = endpoint.rollout ?? null;
  const head = [...HEAD.map((name) => endpoint[name] ?? null), rollout ? rollout.id : null, rollout ? rollout.state : null];
  const rows = Object.values(replicas).sort((a, b) => a.id - b.id);
  return JSON.stringify([head, ...rows.map((each) => ROW.map((name) => each[name] ?? null))]);
}

/**
 * The requests that wait in all its engines; undefined when the frame tells of no replicas (others write to this topic too).
 * @param {Record<string, any>} data
 * @returns {number | null | undefined}
 */
export function waitingIn(data) {
  if (data.replicas === undefined) return undefined;
  return sumOf(Object.values(data.replicas).map((replica) => replica.waiting ?? null));
}

/**
 * A sum that is missing only when nobody tells a part of it.
 * @param {(number | null)[]} values
 */
export function sumOf(values) {
  const told = values.filter((value) => value !== null);
  return told.length === 0 ? null : told.reduce((sum, value) => sum + value, 0);
}
