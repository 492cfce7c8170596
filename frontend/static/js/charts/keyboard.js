// @ts-check
/**
 * Charts without a pointer: ←/→ one point (Shift: ten), Home/End, ↑/↓ the line, T the table; values are spoken.
 *
 * The live region speaks at most once a second and only what a key asked for, never a live tick.
 */
import { formatMoment } from "./format.js";
import { valueAt } from "./tooltip.js";

const SPEAK_MS = 1_000;

/**
 * The next point for a key, or null when the key moves nothing.
 * @param {{key: string, shiftKey: boolean}} event
 * @param {number} index
 * @param {number} length
 */
export function nextIndex(event, index, length) {
  const stride = event.shiftKey ? 10 : 1;
  /** @type {Record<string, number>} */
  const moves = { ArrowLeft: index - stride, ArrowRight: index + stride, Home: 0, End: length - 1 };
  if (!(event.key in moves) || length === 0) return null;
  return Math.min(Math.max(moves[event.key], 0), length - 1);
}

/** Speaks the newest text after a pause, so that a held key does not make a queue. */
export class Speaker {
  /** @param {(text: string) => void} say @param {(callback: () => void, ms: number) => any} [setTimer] */
  constructor(say, setTimer = (callback, ms) => setTimeout(callback, ms)) {
    this.say = say;
    this.setTimer = setTimer;
    /** @type {string | null} */
    this.waiting = null;
    this.isBusy = false;
  }

  /** @param {string} text */
  speak(text) {
    this.waiting = text;
    if (!this.isBusy) this.flush();
  }

  flush() {
    this.isBusy = this.waiting !== null;
    if (this.waiting === null) return;
    this.say(this.waiting);
    this.waiting = null;
    this.setTimer(() => this.flush(), SPEAK_MS);
  }
}

/**
 * Let the keyboard read a chart.
 * @param {import("./chart.js").Chart} chart
 * @param {(chart: import("./chart.js").Chart, index: number | null) => void} point shows the values of a point
 * @param {() => void} toggleTable
 * @returns {() => void} ends it
 */
export function readByKeyboard(chart, point, toggleTable) {
  const region = /** @type {HTMLElement} */ (chart.figure.querySelector("[data-spoken]"));
  const speaker = new Speaker((text) => {
    region.textContent = text;
  });
  let index = -1;
  let line = 0;

  /** @param {KeyboardEvent} event */
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "t" || event.key === "T") return toggleTable();
    if (event.key === "Escape") return point(chart, null);
    const length = chart.model.x.length;
    if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      line = (line + (event.key === "ArrowDown" ? 1 : -1) + chart.choice.lines.length) % chart.choice.lines.length;
    } else {
      const moved = nextIndex(event, index < 0 ? length : index, length);
      if (moved === null) return;
      index = moved;
    }
    event.preventDefault();
    if (index < 0 || length === 0) return;
    moveCursor(chart, index);
    point(chart, index);
    const spec = chart.choice.lines[line];
    speaker.speak(`${spec.label}: ${valueAt(chart, spec, index)}, ${formatMoment(chart.model.x[index] * 1000, chart.host.zone)}`);
  };
  const left = () => point(chart, null);
  chart.mountPoint.addEventListener("keydown", pressed);
  chart.mountPoint.addEventListener("blur", left);
  return () => {
    chart.mountPoint.removeEventListener("keydown", pressed);
    chart.mountPoint.removeEventListener("blur", left);
  };
}

/** @param {import("./chart.js").Chart} chart @param {number} index */
function moveCursor(chart, index) {
  const plot = chart.plot;
  if (plot === null) return;
  plot.setCursor({ left: plot.valToPos(chart.model.x[index], "x"), top: plot.over.clientHeight / 2 });
}
