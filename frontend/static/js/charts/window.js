// @ts-check
/** The stretch of time that a page's charts show: it slides with the clock, or stands still when given or zoomed into. */

/** Charts that slide are fetched afresh this often, as what was appended live is coarser than what is stored. */
export const REFETCH_MS = 300_000;
/** Beyond this a bucket is minutes wide: fetching once a minute replaces the live appending. */
export const LONGEST_LIVE_SECONDS = 21_600;

export class TimeWindow {
  /**
   * @param {{from: number, to: number, isLive: boolean}} page what the page was opened with, seconds
   * @param {() => number} now seconds
   */
  constructor(page, now) {
    this.page = page;
    this.now = now;
    /** @type {{from: number, to: number} | null} */
    this.zoomed = null;
    this.offset = page.isLive ? page.to - now() : 0;
  }

  /** Whether new readings move it. */
  get isSliding() {
    return this.page.isLive && this.zoomed === null;
  }

  get isLiveAppended() {
    return this.isSliding && this.page.to - this.page.from <= LONGEST_LIVE_SECONDS;
  }

  /** @returns {{from: number, to: number}} seconds */
  current() {
    if (this.zoomed !== null) return this.zoomed;
    if (!this.page.isLive) return { from: this.page.from, to: this.page.to };
    // The panel's clock counts, not the browser's: `offset` is what they differ by.
    const to = this.now() + this.offset;
    return { from: to - (this.page.to - this.page.from), to };
  }

  /** @param {number} from @param {number} to */
  zoom(from, to) {
    const least = 10;
    const middle = (from + to) / 2;
    this.zoomed = to - from >= least ? { from, to } : { from: middle - least / 2, to: middle + least / 2 };
  }

  /** @returns {boolean} whether it was zoomed */
  unzoom() {
    const was = this.zoomed !== null;
    this.zoomed = null;
    return was;
  }
}

/** More points than this are no help on a chart of half the page. */
const MOST_POINTS = 460;

/**
 * How many points to ask for; two more than fit, as the store aligns its grid.
 * @param {number} seconds
 */
export function pointsFor(seconds) {
  return Math.min(MOST_POINTS, Math.ceil(seconds) + 2);
}
