// @ts-check
/** What is drawn over the lines: thresholds with their breach areas, and a label at the end of each line. */
import { formatValue } from "./format.js";
import { cssColour, lineColour } from "./palette.js";

const FONT = '12px system-ui, "PingFang SC", "Microsoft YaHei UI", sans-serif';
const LABEL_HEIGHT = 12;

/**
 * @typedef {object} Threshold
 * @property {number} value
 * @property {string} label
 */

/** Device pixels per CSS pixel as uPlot uses them. @param {any} plot */
function ratio(plot) {
  return plot.pxRatio ?? devicePixelRatio;
}

/**
 * Hatch, above each threshold, the stretches of time in which a line was over it. Not by colour alone.
 * @param {any} plot
 * @param {Threshold[]} thresholds
 */
export function drawBreaches(plot, thresholds) {
  for (const threshold of thresholds) {
    const spans = breachSpans(plot.data, threshold.value);
    if (spans.length === 0) continue;
    const top = plot.bbox.top;
    const bottom = Math.max(top, plot.valToPos(threshold.value, "y", true));
    const area = new Path2D();
    for (const [from, to] of spans) {
      const left = plot.valToPos(from, "x", true);
      const right = Math.max(left + 2, plot.valToPos(to, "x", true));
      area.rect(left, top, right - left, bottom - top);
    }
    plot.ctx.save();
    plot.ctx.beginPath();
    plot.ctx.rect(plot.bbox.left, top, plot.bbox.width, plot.bbox.height);
    plot.ctx.clip();
    plot.ctx.clip(area);
    hatch(plot, top, bottom);
    plot.ctx.restore();
  }
}

/** @param {any} plot @param {number} top @param {number} bottom */
function hatch(plot, top, bottom) {
  const scale = ratio(plot);
  const gap = 6 * scale;
  const height = bottom - top;
  plot.ctx.strokeStyle = cssColour("--critical-mark");
  plot.ctx.globalAlpha = 0.45;
  plot.ctx.lineWidth = scale;
  plot.ctx.beginPath();
  for (let x = plot.bbox.left - height; x < plot.bbox.left + plot.bbox.width; x += gap) {
    plot.ctx.moveTo(x, bottom);
    plot.ctx.lineTo(x + height, top);
  }
  plot.ctx.stroke();
}

/**
 * Stretches of x in which any column is over a value.
 * @param {(number | null | undefined)[][]} data x, then columns
 * @param {number} limit
 * @returns {[number, number][]}
 */
export function breachSpans(data, limit) {
  const [x, ...columns] = /** @type {any} */ (data);
  /** @type {[number, number][]} */
  const spans = [];
  const over = new Array(columns.length).fill(false);
  let start = null;
  for (let index = 0; index < x.length; index += 1) {
    columns.forEach((/** @type {any} */ column, /** @type {number} */ at) => {
      if (column[index] !== undefined) over[at] = column[index] !== null && column[index] > limit;
    });
    const isOver = over.includes(true);
    if (isOver && start === null) start = x[index];
    if (!isOver && start !== null) {
      spans.push([start, x[index]]);
      start = null;
    }
  }
  if (start !== null) spans.push([start, x[x.length - 1]]);
  return spans;
}

/** @param {any} plot @param {Threshold[]} thresholds */
export function drawThresholds(plot, thresholds) {
  const scale = ratio(plot);
  const { left, width, top, height } = plot.bbox;
  for (const threshold of thresholds) {
    const y = plot.valToPos(threshold.value, "y", true);
    if (y < top || y > top + height) continue;
    plot.ctx.save();
    plot.ctx.strokeStyle = plot.ctx.fillStyle = cssColour("--text-2");
    plot.ctx.lineWidth = 1.5 * scale;
    plot.ctx.setLineDash([4 * scale, 4 * scale]);
    plot.ctx.beginPath();
    plot.ctx.moveTo(left, y);
    plot.ctx.lineTo(left + width, y);
    plot.ctx.stroke();
    plot.ctx.font = scaledFont(scale);
    plot.ctx.textAlign = "left";
    plot.ctx.textBaseline = y - top > 14 * scale ? "bottom" : "top";
    legible(plot.ctx, threshold.label, left + 4 * scale, y + (plot.ctx.textBaseline === "bottom" ? -2 : 3) * scale, scale);
    plot.ctx.restore();
  }
}

/**
 * Text that can be read over lines: with a rim in the colour of the page.
 * @param {CanvasRenderingContext2D} ctx @param {string} text @param {number} x @param {number} y @param {number} scale
 */
function legible(ctx, text, x, y, scale) {
  ctx.setLineDash([]);
  ctx.lineJoin = "round";
  ctx.lineWidth = 4 * scale;
  ctx.strokeStyle = cssColour("--surface");
  ctx.strokeText(text, x, y);
  ctx.fillText(text, x, y);
}

/** @param {number} scale */
function scaledFont(scale) {
  return FONT.replace("12px", `${12 * scale}px`);
}

/**
 * Write the short name of each line at its end, moved apart where they would overlap.
 * @param {any} plot
 * @param {{label: string, position: number, index: number}[]} ends `index`: the line's column in the plot's data
 */
export function drawEndLabels(plot, ends) {
  const scale = ratio(plot);
  const { left, width, top, height } = plot.bbox;
  const marks = ends.flatMap((end) => {
    const value = lastValue(plot.data[end.index]);
    const y = value === null || !plot.series[end.index].show ? Number.NaN : plot.valToPos(value, "y", true);
    return Number.isNaN(y) ? [] : [{ ...end, y: Math.min(Math.max(y, top), top + height) }];
  });
  const places = spread(marks.map((mark) => mark.y), LABEL_HEIGHT * scale, top, top + height);
  plot.ctx.save();
  plot.ctx.font = scaledFont(scale);
  plot.ctx.textAlign = "left";
  plot.ctx.textBaseline = "middle";
  marks.forEach((mark, at) => {
    plot.ctx.fillStyle = lineColour(mark.position);
    plot.ctx.fillText(shortened(mark.label), left + width + 6 * scale, places[at]);
  });
  plot.ctx.restore();
}

const LONGEST_LABEL = 10;

/** @param {string} label */
function shortened(label) {
  return label.length > LONGEST_LABEL ? `${label.slice(0, LONGEST_LABEL - 1)}…` : label;
}

/** Room that the labels need right of the plot, CSS pixels. @param {string[]} labels */
export function endLabelRoom(labels) {
  return labels.length < 2 ? 12 : 12 + 7 * Math.max(...labels.map((label) => shortened(label).length));
}

/** @param {(number | null | undefined)[]} column */
function lastValue(column) {
  for (let index = column.length - 1; index >= 0; index -= 1) {
    const value = column[index];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}

/**
 * Move positions apart so that neighbours keep a distance, staying as near as possible and inside the bounds.
 * @param {number[]} wanted
 * @param {number} distance
 * @param {number} lowest
 * @param {number} highest
 * @returns {number[]} in the order of `wanted`
 */
export function spread(wanted, distance, lowest, highest) {
  const order = wanted.map((value, index) => ({ value, index })).sort((a, b) => a.value - b.value);
  let least = -Infinity;
  for (const one of order) {
    one.value = Math.max(one.value, least);
    least = one.value + distance;
  }
  let most = highest;
  for (const one of [...order].reverse()) {
    one.value = Math.max(lowest, Math.min(one.value, most));
    most = one.value - distance;
  }
  const result = new Array(wanted.length);
  for (const one of order) result[one.index] = one.value;
  return result;
}

/** A value with its unit, for labels of axes. @param {string} unit */
export function axisValues(unit) {
  return (/** @type {any} */ _plot, /** @type {(number | null)[]} */ splits) =>
    splits.map((value) => (value === null ? "" : formatValue(value, unit)));
}
