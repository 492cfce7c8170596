// @ts-check
/** Pieces of a log in the order of their offsets, each taken once. Pure. */

export const MOST_LINES = 5_000;

export class LogPieces {
  /** @param {number} generation @param {number} shown offset of the last piece that the page came with, -1 for none */
  constructor(generation, shown) {
    this.generation = generation;
    this.shown = shown;
  }

  /**
   * Take what a frame says; returns the lines that are new, and whether the engine was started anew since.
   * @param {Record<string, {text: string, skipped: number}>} log by "generation:offset"
   * @returns {{ lines: string[], isAnew: boolean }}
   */
  take(log) {
    const pieces = Object.entries(log).map(([key, piece]) => {
      const [generation, offset] = key.split(":").map(Number);
      return { generation, offset, ...piece };
    });
    pieces.sort((a, b) => a.generation - b.generation || a.offset - b.offset);
    const lines = [];
    let isAnew = false;
    for (const piece of pieces) {
      if (piece.generation > this.generation) {
        [this.generation, this.shown, isAnew] = [piece.generation, -1, true];
        lines.length = 0;
      }
      if (piece.generation < this.generation || piece.offset <= this.shown) continue;
      this.shown = piece.offset;
      if (piece.skipped) lines.push(`… ${piece.skipped} bytes …`);
      lines.push(...piece.text.replace(/\n$/, "").split("\n"));
    }
    return { lines, isAnew };
  }
}

/** @param {string} line @param {string} text */
export function hasText(line, text) {
  return text === "" || line.toLocaleLowerCase().includes(text.toLocaleLowerCase());
}
