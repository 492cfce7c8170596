// @ts-check
/** Pieces of a log in the order of their offsets, each taken once; and how grave a line is. Pure. */

export const MOST_LINES = 5_000;

/** The same patterns as frontend/serving/logs.py. */
const ERROR = /\b(?:ERROR|CRITICAL|FATAL|Traceback)\b|\b\w*(?:Error|Exception)\b: |^[\d.]+ E |^E\d{4} |\b\w+Error\b:?$/;
const WARNING = /\b(?:WARN|WARNING)\b|\b\w*Warning: |^[\d.]+ W |^W\d{4} /;

/**
 * "error", "warning" or "".
 * @param {string} line
 * @param {string} [before] the level of the line before, which an indented line goes on with
 */
export function levelOf(line, before = "") {
  if (line.startsWith(" ") || line.startsWith("\t")) return before;
  if (ERROR.test(line)) return "error";
  return WARNING.test(line) ? "warning" : "";
}

/**
 * @typedef {object} LogLine
 * @property {string} text
 * @property {string | null} at ISO time at which the panel got it
 */

export class LogPieces {
  /** @param {number} generation @param {number} shown offset of the last piece that the page came with, -1 for none */
  constructor(generation, shown) {
    this.generation = generation;
    this.shown = shown;
  }

  /**
   * Take what a frame says; returns the lines that are new, and whether the engine was started anew since.
   * @param {Record<string, {text: string, skipped: number, at?: string}>} log by "generation:offset"
   * @returns {{ lines: LogLine[], isAnew: boolean }}
   */
  take(log) {
    const pieces = Object.entries(log).map(([key, piece]) => {
      const [generation, offset] = key.split(":").map(Number);
      return { generation, offset, ...piece };
    });
    pieces.sort((a, b) => a.generation - b.generation || a.offset - b.offset);
    /** @type {LogLine[]} */
    const lines = [];
    let isAnew = false;
    for (const piece of pieces) {
      if (piece.generation > this.generation) {
        [this.generation, this.shown, isAnew] = [piece.generation, -1, true];
        lines.length = 0;
      }
      if (piece.generation < this.generation || piece.offset <= this.shown) continue;
      this.shown = piece.offset;
      if (piece.skipped) lines.push({ text: `… ${piece.skipped} bytes …`, at: null });
      lines.push(...piece.text.replace(/\n$/, "").split("\n").map((text) => ({ text, at: piece.at ?? null })));
    }
    return { lines, isAnew };
  }
}

/** @param {string} line @param {string} text */
export function hasText(line, text) {
  return text === "" || line.toLocaleLowerCase().includes(text.toLocaleLowerCase());
}

/** Whether a line of a level is shown: all, warnings and errors, or errors. @param {string} level @param {string} wanted */
export function hasLevel(level, wanted) {
  return wanted === "" || level === "error" || (wanted === "warning" && level === "warning");
}
