// @ts-check
/**
 * One chart: a figure of the page, its model and, while it is on the screen, its plot.
 *
 * The plot is uPlot (a script of its own, `globalThis.uPlot`). Lines are means; above each lies a band up to the peaks of
 * its buckets, so that a spike of two seconds stays visible on a month.
 */
import { axisValues, drawBreaches, drawEndLabels, drawThresholds, endLabelRoom } from "./overlays.js";
import { ChartModel, lineKey } from "./model.js";
import { cssColour, lineColour, lineDash, withAlpha } from "./palette.js";
import { byteMarks, timeLabel, timeMarks } from "./ticks.js";

const BAND_ALPHA = 0.16;
const MANY_BANDS_ALPHA = 0.08;
/** Room for the labels of the value axis, CSS pixels. @type {Record<string, number>} */
const AXIS_WIDTH = { percent: 48, celsius: 56, watts: 64, mhz: 80, load: 48, bytes: 74, bytes_per_second: 80, per_second: 74, milliseconds: 74, requests: 56 };

/**
 * @typedef {object} LineSpec
 * @property {string} subject "gpu:12" or "server:3"
 * @property {string} metric
 * @property {string} label
 * @property {string} short what stands at the end of the line
 * @property {number} colour position in the palette
 * @property {number[]} [dash] its own, where lines share a hue
 * @property {number} [scale]
 * @typedef {object} Choice one thing that the chart can show
 * @property {string} key
 * @property {string} label
 * @property {string} unit
 * @property {number | null} minimum
 * @property {number | null} maximum
 * @property {LineSpec[]} lines
 * @property {import("./overlays.js").Threshold[]} thresholds
 * @typedef {object} Host what a chart needs of its page
 * @property {string} zone
 * @property {string} syncKey
 * @property {() => {from: number, to: number}} window seconds
 * @property {(from: number, to: number) => void} zoom
 * @property {() => void} unzoom
 * @property {(chart: Chart, index: number | null) => void} pointed
 */

export class Chart {
  /**
   * @param {HTMLElement} figure
   * @param {Choice} choice
   * @param {Host} host
   */
  constructor(figure, choice, host) {
    this.figure = figure;
    this.host = host;
    this.mountPoint = /** @type {HTMLElement} */ (figure.querySelector("[data-plot]"));
    /** @type {any} */
    this.plot = null;
    /** @type {Set<string>} subjects that the legend switched off */
    this.hidden = new Set();
    this.isVisible = false;
    this.isDirty = true;
    this.choice = choice;
    this.model = modelOf(choice);
  }

  /** Show something else. @param {Choice} choice */
  choose(choice) {
    this.choice = choice;
    this.model = modelOf(choice);
    this.unmount();
  }

  /** What this chart asks of the series API. */
  get metrics() {
    return this.choice.lines.map((line) => line.metric);
  }

  /** @param {import("./wire.js").WireResult} result @param {number} intervalSeconds */
  load(result, intervalSeconds) {
    this.model.intervalSeconds = intervalSeconds;
    this.model.load(result);
    this.isDirty = true;
    this.figure.dataset.state = this.model.x.length === 0 ? "empty" : "ready";
  }

  /**
   * Append what a live frame says of one subject.
   * @param {string} subject
   * @param {number} at seconds
   * @param {(metric: string) => number | null | undefined} value
   */
  append(subject, at, value) {
    for (const line of this.choice.lines) {
      if (line.subject !== subject) continue;
      const reading = value(line.metric);
      if (reading === undefined) continue;
      if (this.model.append(keyOf(line), at, reading)) this.isDirty = true;
    }
    if (this.isDirty && this.figure.dataset.state === "empty") this.figure.dataset.state = "ready";
  }

  // --- drawing ------------------------------------------------------------------------------------------------------

  /** Draw when on the screen and something changed. @param {boolean} [isForced] */
  draw(isForced = false) {
    if (!this.isVisible || (!this.isDirty && !isForced) || this.model.x.length === 0) return;
    if (this.plot === null) this.mount();
    const { from, to } = this.host.window();
    this.model.prune(from - this.model.stepSeconds);
    this.plot.batch(() => {
      this.plot.setData(this.model.aligned(), false);
      this.plot.setScale("x", { min: from, max: to });
    });
    this.isDirty = false;
  }

  mount() {
    this.plot = new /** @type {any} */ (globalThis).uPlot(this.options(), this.model.aligned(), this.mountPoint);
    this.applyHidden();
  }

  unmount() {
    this.plot?.destroy();
    this.plot = null;
    this.isDirty = true;
  }

  resize() {
    if (this.plot !== null) this.plot.setSize(this.size());
  }

  /** After a change of theme. */
  recolour() {
    this.plot?.redraw(false);
  }

  size() {
    return { width: Math.max(160, this.mountPoint.clientWidth), height: this.mountPoint.clientHeight || 200 };
  }

  options() {
    return {
      ...this.size(),
      padding: [8, endLabelRoom(this.choice.lines.map((line) => line.short)), 0, 0],
      legend: { show: false },
      series: [{}, ...this.seriesOptions()],
      bands: this.bandOptions(),
      scales: {
        x: { time: false, range: () => Object.values(this.host.window()) },
        y: { range: (/** @type {any} */ _, /** @type {any} */ low, /** @type {any} */ high) => this.yRange(low, high) },
      },
      axes: [this.timeAxis(), this.valueAxis()],
      cursor: this.cursorOptions(),
      focus: { alpha: 0.35 },
      hooks: {
        drawAxes: [(/** @type {any} */ plot) => drawBreaches(plot, this.choice.thresholds)],
        draw: [(/** @type {any} */ plot) => this.drawOver(plot)],
        setSelect: [(/** @type {any} */ plot) => this.selected(plot)],
        setCursor: [(/** @type {any} */ plot) => this.host.pointed(this, plot.cursor.idx ?? null)],
      },
    };
  }

  seriesOptions() {
    const options = [];
    for (const line of this.namedSpecs) {
      const stroke = () => lineColour(line.colour);
      options.push({ label: line.label, stroke, width: 2, dash: line.dash ?? lineDash(line.colour), points: { size: 5, filter: lonely, fill: stroke, stroke } });
      options.push({ label: `${line.label} ↑`, stroke: "transparent", width: 0, points: { show: false } });
    }
    if (this.model.foldedLines.length > 0) {
      options.push({ label: "", stroke: () => cssColour("--text-3"), width: 1, points: { show: false } });
      options.push({ label: "", stroke: () => cssColour("--text-3"), width: 1, points: { show: false } });
    }
    return options;
  }

  bandOptions() {
    const alpha = this.namedSpecs.length > 2 ? MANY_BANDS_ALPHA : BAND_ALPHA;
    const bands = this.namedSpecs.map((line, at) => ({
      series: [2 * at + 2, 2 * at + 1],
      fill: () => withAlpha(lineColour(line.colour), alpha),
    }));
    const folded = 2 * this.namedSpecs.length + 1;
    if (this.model.foldedLines.length > 0) {
      bands.push({ series: [folded + 1, folded], fill: () => withAlpha(cssColour("--text-3"), BAND_ALPHA) });
    }
    return bands;
  }

  get namedSpecs() {
    return this.choice.lines.slice(0, this.model.namedLines.length);
  }

  /** @param {number | null} low @param {number | null} high */
  yRange(low, high) {
    const { minimum, maximum } = this.choice;
    const bottom = Math.min(minimum ?? low ?? 0, low ?? minimum ?? 0);
    const top = Math.max(maximum ?? high ?? 1, high ?? maximum ?? 1);
    if (maximum !== null && top <= maximum) return [bottom, maximum];
    return [bottom, top === bottom ? bottom + 1 : top + (top - bottom) * 0.08];
  }

  timeAxis() {
    const zone = this.host.zone;
    return {
      ...axisColours(),
      size: 28,
      splits: (/** @type {any} */ plot, /** @type {number} */ _axis, /** @type {number} */ from, /** @type {number} */ to) =>
        timeMarks(from, to, Math.max(2, plot.width / 90), zone),
      values: (/** @type {any} */ _plot, /** @type {number[]} */ splits) =>
        splits.map((at) => timeLabel(at, splits.length > 1 ? splits[1] - splits[0] : 60, zone)),
    };
  }

  valueAxis() {
    const isBytes = this.choice.unit === "bytes";
    const splits = (/** @type {any} */ plot, /** @type {number} */ _axis, /** @type {number} */ from, /** @type {number} */ to) =>
      byteMarks(from, to, Math.max(2, plot.height / 44));
    return {
      ...axisColours(),
      size: AXIS_WIDTH[this.choice.unit] ?? 72,
      space: 36,
      values: axisValues(this.choice.unit),
      ...(isBytes ? { splits } : {}),
    };
  }

  cursorOptions() {
    return {
      sync: { key: this.host.syncKey, scales: ["x", null], setSeries: false },
      drag: { x: true, y: false, setScale: false, dist: 8 },
      focus: { prox: 24, dist: meansOnly },
      points: { size: (/** @type {any} */ _plot, /** @type {number} */ index) => (index % 2 === 1 ? 7 : 0) },
      bind: {
        dblclick: () => () => {
          this.host.unzoom();
          return null;
        },
      },
      y: false,
    };
  }

  /** @param {any} plot */
  drawOver(plot) {
    drawThresholds(plot, this.choice.thresholds);
    if (this.model.lines.length > 1) {
      drawEndLabels(plot, this.namedSpecs.map((line, at) => ({ label: line.short, position: line.colour, index: 2 * at + 1 })));
    }
  }

  /** A stretch was dragged: all charts of the page go there. @param {any} plot */
  selected(plot) {
    const { left, width } = plot.select;
    if (width < 8) return;
    const from = plot.posToVal(left, "x");
    const to = plot.posToVal(left + width, "x");
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.host.zoom(from, to);
  }

  // --- the legend ---------------------------------------------------------------------------------------------------

  /** @param {Set<string>} subjects */
  hide(subjects) {
    this.hidden = subjects;
    this.applyHidden();
  }

  applyHidden() {
    if (this.plot === null) return;
    this.namedSpecs.forEach((line, at) => {
      const show = !this.hidden.has(line.subject);
      if (this.plot.series[2 * at + 1].show === show) return;
      this.plot.setSeries(2 * at + 1, { show });
      this.plot.setSeries(2 * at + 2, { show });
    });
  }

  /** Bring one subject's line forward (null: all alike). @param {string | null} subject */
  focus(subject) {
    if (this.plot === null) return;
    const at = this.namedSpecs.findIndex((line) => line.subject === subject);
    this.plot.setSeries(at < 0 ? null : 2 * at + 1, { focus: true });
  }
}

/** @param {Choice} choice */
function modelOf(choice) {
  return new ChartModel(choice.lines.map((line) => ({ key: keyOf(line), scale: line.scale })));
}

/** @param {LineSpec} line */
export function keyOf(line) {
  return lineKey(line.subject, line.metric);
}

/**
 * The pointer brings forward the nearest mean, never the edge of a band.
 * @param {any} _plot @param {number} index @param {number} _at @param {number} position @param {number} pointer
 */
function meansOnly(_plot, index, _at, position, pointer) {
  return index % 2 === 1 ? position - pointer : Infinity;
}

/** Readings without neighbours make no line: draw them as points. @param {any} plot @param {number} seriesIndex */
function lonely(plot, seriesIndex) {
  const values = plot.data[seriesIndex];
  const found = [];
  for (let index = 0; index < values.length; index += 1) {
    const isAlone = values[index - 1] === null || index === 0;
    const endsAlone = values[index + 1] === null || index === values.length - 1;
    if (values[index] !== null && values[index] !== undefined && isAlone && endsAlone) found.push(index);
  }
  return found;
}

function axisColours() {
  return {
    stroke: () => cssColour("--text-3"),
    font: '12px system-ui, "PingFang SC", "Microsoft YaHei UI", sans-serif',
    grid: { stroke: () => cssColour("--divider"), width: 1 },
    ticks: { show: false },
    border: { show: false },
  };
}
