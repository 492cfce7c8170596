// @ts-check
/**
 * The data of one chart: columns on one time grid, live values appended, more than eight lines folded into a band.
 *
 * Times are seconds (as uPlot wants them). Pure: no document, no drawing.
 */

export const NAMED_LINES = 8;
/** A clock that is wrong by days must not fill the memory. */
const MOST_NEW_BUCKETS = 5_000;
/** Readings farther apart than this many of the usual distances have a missing one between them. */
const JOINED_DISTANCES = 1.75;
/** How many distances on either side say what is usual. */
const NEIGHBOURS = 5;

/**
 * @typedef {object} Line
 * @property {string} key `<subject>/<metric>`
 * @property {number} [scale] what values are multiplied by (100 / total, to draw bytes as a share)
 * @typedef {object} Columns
 * @property {(number | null)[]} mean
 * @property {(number | null)[]} peak
 */

/** @param {string} subject @param {string} metric */
export function lineKey(subject, metric) {
  return `${subject}/${metric}`;
}

export class ChartModel {
  /** @param {Line[]} lines in the order of drawing; those after the eighth become one band */
  constructor(lines) {
    this.lines = lines;
    this.stepSeconds = 1;
    /** @type {number[]} */
    this.x = [];
    /** @type {Map<string, Columns>} */
    this.columns = new Map();
    /** How often readings usually come; on a finer grid the store repeats each until the next. */
    this.intervalSeconds = 0;
    /** The newest live reading of each line: when, in which bucket, how many readings that holds.
     * @type {Map<string, {at: number, index: number, count: number}>} */
    this.newest = new Map();
    this.clear();
  }

  clear() {
    this.x = [];
    this.newest.clear();
    for (const line of this.lines) this.columns.set(line.key, { mean: [], peak: [] });
  }

  /**
   * Take what the panel answered; lines it did not answer are gaps.
   * @param {import("./wire.js").WireResult} result
   */
  load(result) {
    this.clear();
    this.stepSeconds = result.stepSeconds;
    this.x = Array.from({ length: result.points }, (_, index) => result.fromMs / 1000 + index * result.stepSeconds);
    const found = new Map(result.series.map((one) => [wireKey(one), one]));
    for (const line of this.lines) {
      const one = found.get(line.key);
      this.columns.set(line.key, {
        mean: scaled(one?.mean, line.scale, result.points),
        peak: scaled(one?.peak, line.scale, result.points),
      });
    }
    this.trimFuture();
  }

  /** Buckets that have not begun to fill are no gaps: the chart ends at the last one that any line has. */
  trimFuture() {
    let length = this.x.length;
    while (length > 0 && this.lines.every((line) => this.columns.get(line.key)?.mean[length - 1] === null)) length -= 1;
    this.x.length = length;
    for (const { mean, peak } of this.columns.values()) mean.length = peak.length = length;
  }

  /**
   * Add one live reading. Readings older than the newest one of their line are left to the next fetch.
   * @param {string} key
   * @param {number} atSeconds
   * @param {number | null} value
   * @returns {boolean} whether something changed
   */
  append(key, atSeconds, value) {
    const columns = this.columns.get(key);
    if (columns === undefined || !Number.isFinite(atSeconds)) return false;
    if (this.x.length === 0) this.grow(atSeconds);
    const scale = this.lines.find((line) => line.key === key)?.scale ?? 1;
    const reading = value === null ? null : value * scale;
    const index = this.bucketOf(key, columns, atSeconds, reading);
    if (index === null) return false;
    while (index >= this.x.length) this.grow(this.x[this.x.length - 1] + this.stepSeconds);
    if (reading === null) return true;
    this.put(columns, key, index, reading);
    this.newest.set(key, { at: atSeconds, index, count: index === this.newest.get(key)?.index ? this.countOf(key) + 1 : 1 });
    return true;
  }

  /**
   * Which bucket a reading belongs to. Readings that come about once a step may fall twice into one bucket and then skip
   * one, when their phase lies near an edge; the second one goes to the next bucket, or the line would show a gap.
   * @param {string} key
   * @param {Columns} columns
   * @param {number} atSeconds
   * @param {number | null} reading
   * @returns {number | null} null when it is older than what is known
   */
  bucketOf(key, columns, atSeconds, reading) {
    const index = Math.floor((atSeconds - this.x[0]) / this.stepSeconds);
    const newest = this.newest.get(key);
    if (index < 0 || (newest !== undefined && atSeconds <= newest.at)) return null;
    if (index - this.x.length > MOST_NEW_BUCKETS) return null;
    const held = columns.mean[index] ?? null;
    if (held === null || isSame(held, reading, newest)) return index;
    const since = atSeconds - (newest?.at ?? this.x[index]);
    return since >= this.stepSeconds * 0.75 ? index + 1 : index;
  }

  /** @param {string} key */
  countOf(key) {
    return this.newest.get(key)?.count ?? 1;
  }

  /** @param {number} at */
  grow(at) {
    this.x.push(at);
    for (const { mean, peak } of this.columns.values()) {
      mean.push(null);
      peak.push(null);
    }
  }

  /**
   * @param {Columns} columns
   * @param {string} key
   * @param {number} index
   * @param {number} value
   */
  put(columns, key, index, value) {
    const before = columns.mean[index];
    const count = index === this.newest.get(key)?.index ? this.countOf(key) : 1;
    columns.mean[index] = before === null ? value : before + (value - before) / (count + 1);
    columns.peak[index] = Math.max(columns.peak[index] ?? value, value);
  }

  /** Drop what lies before a moment, one bucket excepted so that lines still enter from the left. @param {number} seconds */
  prune(seconds) {
    let drop = 0;
    while (drop + 1 < this.x.length && this.x[drop + 1] < seconds) drop += 1;
    if (drop === 0) return;
    this.x.splice(0, drop);
    for (const newest of this.newest.values()) newest.index -= drop;
    for (const { mean, peak } of this.columns.values()) {
      mean.splice(0, drop);
      peak.splice(0, drop);
    }
  }

  /** How many buckets one reading fills at most. */
  get every() {
    return Math.max(1, Math.ceil(this.intervalSeconds / this.stepSeconds));
  }

  /** The buckets in which some line has a reading of its own, the newest first. @returns {number[]} */
  readingPlaces() {
    const places = new Set([...this.columns.values()].flatMap(({ mean, peak }) => pointsOf(mean, peak, this.every)));
    return [...places].sort((a, b) => b - a);
  }

  get namedLines() {
    return this.lines.slice(0, NAMED_LINES);
  }

  get foldedLines() {
    return this.lines.slice(NAMED_LINES);
  }

  /**
   * Columns as uPlot takes them: x, mean and peak of each named line, then low and high of the folded ones.
   * @returns {(number | null | undefined)[][]} null is a gap; undefined lies between two readings that belong together
   */
  aligned() {
    /** @type {(number | null | undefined)[][]} */
    const data = [this.x];
    const { every } = this;
    for (const line of this.namedLines) {
      const { mean, peak } = /** @type {Columns} */ (this.columns.get(line.key));
      data.push(joined(mean, peak, every), joined(peak, mean, every));
    }
    if (this.foldedLines.length > 0) data.push(...this.envelope());
    return data;
  }

  /** @returns {[(number | null)[], (number | null)[]]} lowest mean and highest peak of the folded lines */
  envelope() {
    const folded = this.foldedLines.map((line) => /** @type {Columns} */ (this.columns.get(line.key)));
    const low = this.x.map((_, index) => extreme(folded.map((one) => one.mean[index]), Math.min));
    const high = this.x.map((_, index) => extreme(folded.map((one) => one.peak[index]), Math.max));
    return [low, high];
  }

  /** The newest reading of a line. @param {string} key @returns {{at: number, value: number} | null} */
  latest(key) {
    const mean = this.columns.get(key)?.mean ?? [];
    for (let index = mean.length - 1; index >= 0; index -= 1) {
      const value = mean[index];
      if (value !== null) return { at: this.x[index], value };
    }
    return null;
  }
}

/**
 * The first live reading after a fetch is often the one that the fetch already brought, rounded to float32.
 * @param {number} held
 * @param {number | null} reading
 * @param {object | undefined} newest
 */
function isSame(held, reading, newest) {
  return newest === undefined && reading !== null && Math.fround(reading) === Math.fround(held);
}

/** @param {import("./wire.js").WireSeries} one */
function wireKey(one) {
  const [kind, id] = Object.entries({ gpu: one.gpu, server: one.server, endpoint: one.endpoint }).find(([, pk]) => pk !== null) ?? [];
  return lineKey(`${kind}:${id}`, one.metric);
}

/**
 * @param {(number | null)[] | undefined} values
 * @param {number | undefined} scale
 * @param {number} points
 * @returns {(number | null)[]}
 */
function scaled(values, scale, points) {
  if (values === undefined) return new Array(points).fill(null);
  if (scale === undefined || scale === 1) return [...values];
  return values.map((value) => (value === null ? null : value * scale));
}

/**
 * A column as a line: repeats of a reading on a grid finer than readings come are no points of it, and empty buckets
 * between two readings that belong together are no gap. What belongs together is told by the distances around, because an
 * agent reads more often while somebody looks.
 * @param {(number | null)[]} values
 * @param {(number | null)[]} beside the other column of the line: a repeat repeats both
 * @param {number} every buckets that one reading fills at most
 * @returns {(number | null | undefined)[]}
 */
export function joined(values, beside, every) {
  const places = pointsOf(values, beside, every);
  /** @type {(number | null | undefined)[]} */
  const result = [...values];
  const distances = places.slice(1).map((place, at) => place - places[at]);
  distances.forEach((distance, at) => {
    const [from, to] = [places[at], places[at + 1]];
    const isJoined = distance <= JOINED_DISTANCES * usual(distances, at);
    for (let index = from + 1; index < to; index += 1) if (isJoined || result[index] !== null) result[index] = undefined;
  });
  return result;
}

/**
 * The buckets in which a reading came.
 * @param {(number | null)[]} values @param {(number | null)[]} beside @param {number} every
 */
function pointsOf(values, beside, every) {
  /** @type {number[]} */
  const places = [];
  let last = -Infinity;
  for (let index = 0; index < values.length; index += 1) {
    if (values[index] === null) continue;
    const isRepeat = index - last < every && values[index] === values[last] && beside[index] === beside[last];
    if (isRepeat) continue;
    places.push(index);
    last = index;
  }
  return places;
}

/** The usual distance at a place: the larger of the medians before and after it. @param {number[]} distances @param {number} at */
function usual(distances, at) {
  return Math.max(median(distances.slice(Math.max(0, at - NEIGHBOURS), at)), median(distances.slice(at + 1, at + 1 + NEIGHBOURS)));
}

/** @param {number[]} values */
function median(values) {
  return values.length === 0 ? 0 : values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

/**
 * @param {(number | null)[]} values
 * @param {(...values: number[]) => number} pick
 */
function extreme(values, pick) {
  const known = /** @type {number[]} */ (values.filter((value) => value !== null));
  return known.length === 0 ? null : pick(...known);
}
