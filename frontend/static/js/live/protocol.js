// @ts-check
/**
 * What a browser must remember of a live topic: which numbers it has seen. Pure, so that it is tested without a socket.
 *
 * A snapshot sets the number. A delta covers `from`..`seq` (just `seq` when `from` is not said): a reader that has seen
 * `from - 1` or later has missed nothing.
 */

/**
 * @typedef {Record<string, Record<string, any>>} LiveData section → key → value
 * @typedef {object} Frame
 * @property {"snapshot" | "delta"} type
 * @property {string} topic
 * @property {number} seq
 * @property {number} [from]
 * @property {string} at
 * @property {LiveData} data
 * @property {boolean} [isResync] a snapshot that is not the first one of its topic
 */

export class TopicCursor {
  constructor() {
    /** @type {number | null} null while a snapshot is awaited */
    this.seq = null;
    this.snapshots = 0;
  }

  /** Forget the number: only a snapshot is accepted next. */
  reset() {
    this.seq = null;
  }

  /**
   * Say what to do with a frame.
   * @param {{type: string, seq: number, from?: number}} frame
   * @returns {"snapshot" | "apply" | "gap" | "ignore"}
   */
  take(frame) {
    if (frame.type === "snapshot") {
      this.seq = frame.seq;
      this.snapshots += 1;
      return "snapshot";
    }
    if (this.seq === null || frame.seq <= this.seq) return "ignore";
    if ((frame.from ?? frame.seq) > this.seq + 1) {
      this.seq = null;
      return "gap";
    }
    this.seq = frame.seq;
    return "apply";
  }
}

/**
 * Merge `newer` into `into`, section by section, key by key; the newest value wins whole.
 * @param {LiveData} into
 * @param {LiveData} newer
 * @returns {LiveData} `into`
 */
export function merge(into, newer) {
  for (const [section, entries] of Object.entries(newer)) {
    into[section] = { ...(into[section] ?? {}), ...entries };
  }
  return into;
}
