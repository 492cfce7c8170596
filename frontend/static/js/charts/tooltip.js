// @ts-check
/** The values under the pointer, beside it; on the other charts of the page only the cursor's line shows. */
import { keyOf } from "./chart.js";
import { formatMoment, formatValue } from "./format.js";

export class Tooltip {
  /** @param {string} zone */
  constructor(zone) {
    this.zone = zone;
    this.element = document.createElement("div");
    this.element.className = "chart-tip";
    this.element.hidden = true;
    this.element.setAttribute("aria-hidden", "true"); // keyboard users hear the same from the live region
  }

  /**
   * @param {import("./chart.js").Chart} chart
   * @param {number | null} index
   */
  show(chart, index) {
    if (index === null || chart.plot === null || chart.model.x[index] === undefined) return this.hide();
    if (this.element.parentElement !== chart.mountPoint) chart.mountPoint.append(this.element);
    const at = chart.model.x[index] * 1000;
    this.element.replaceChildren(this.heading(at), ...rows(chart, index));
    this.element.hidden = false;
    this.place(chart);
  }

  hide() {
    this.element.hidden = true;
  }

  /** @param {number} at ms */
  heading(at) {
    const time = document.createElement("div");
    time.className = "chart-tip-time";
    time.textContent = formatMoment(at, this.zone);
    const other = formatMoment(at, "UTC");
    if (other.slice(0, 19) === time.textContent.slice(0, 19)) return time; // the viewer's zone is UTC: once is enough
    const utc = document.createElement("span");
    utc.textContent = other.slice(11);
    time.append(" ", utc);
    return time;
  }

  /** @param {import("./chart.js").Chart} chart */
  place(chart) {
    const plot = chart.plot;
    const over = plot.over.getBoundingClientRect();
    const mount = chart.mountPoint.getBoundingClientRect();
    const left = over.left - mount.left + plot.cursor.left;
    const width = this.element.offsetWidth;
    const fits = left + 16 + width < mount.width;
    this.element.style.left = `${Math.max(0, fits ? left + 16 : left - 16 - width)}px`;
    this.element.style.top = `${over.top - mount.top + 4}px`;
  }
}

/** @param {import("./chart.js").Chart} chart @param {number} index */
function rows(chart, index) {
  return chart.choice.lines.flatMap((line) => {
    if (chart.hidden.has(line.subject)) return [];
    const value = valueAt(chart, line, index);
    const row = document.createElement("div");
    row.className = "chart-tip-row";
    const swatch = document.createElement("i");
    swatch.className = `swatch swatch-${(line.colour % 8) + 1}`;
    const name = document.createElement("span");
    name.textContent = line.label;
    const number = document.createElement("b");
    number.textContent = value;
    row.append(swatch, name, number);
    return [row];
  });
}

/**
 * "82 %", with the peak of the bucket when it lies visibly above.
 * @param {import("./chart.js").Chart} chart
 * @param {import("./chart.js").LineSpec} line
 * @param {number} index
 */
export function valueAt(chart, line, index) {
  const columns = chart.model.columns.get(keyOf(line));
  const mean = columns?.mean[index] ?? null;
  const peak = columns?.peak[index] ?? null;
  const shown = formatValue(mean, chart.choice.unit);
  const peakShown = formatValue(peak, chart.choice.unit);
  return mean === null || peakShown === shown ? shown : `${shown} (${gettext("peak")} ${peakShown})`;
}
