// @ts-check
/** Events on the charts: a mark at the top edge of every chart, each a link to the event itself. */
import { formatMoment } from "./format.js";

/**
 * @typedef {object} Marker
 * @property {string} id
 * @property {number} at seconds
 * @property {string} severity info | warning | critical
 * @property {string} label
 * @property {string} href
 */

export class Markers {
  /** @param {Marker[]} markers @param {string} zone */
  constructor(markers, zone) {
    /** @type {Map<string, Marker>} */
    this.known = new Map(markers.map((marker) => [marker.id, marker]));
    this.zone = zone;
  }

  /** @param {Marker[]} markers */
  replace(markers) {
    this.known = new Map(markers.map((marker) => [marker.id, marker]));
  }

  /** Put the marks of the visible time on a chart. @param {import("./chart.js").Chart} chart */
  place(chart) {
    if (chart.plot === null) return;
    const layer = layerOf(chart);
    const { min, max } = chart.plot.scales.x;
    const shown = [...this.known.values()].filter((marker) => marker.at >= min && marker.at <= max);
    const wanted = new Set(shown.map((marker) => marker.id));
    for (const element of [...layer.children]) {
      if (!wanted.has(/** @type {HTMLElement} */ (element).dataset.marker ?? "")) element.remove();
    }
    for (const marker of shown) {
      const element = this.elementOf(layer, marker);
      element.style.left = `${chart.plot.valToPos(marker.at, "x")}px`;
    }
  }

  /** @param {HTMLElement} layer @param {Marker} marker @returns {HTMLElement} */
  elementOf(layer, marker) {
    const found = layer.querySelector(`[data-marker="${CSS.escape(marker.id)}"]`);
    if (found !== null) return /** @type {HTMLElement} */ (found);
    const link = document.createElement("a");
    link.className = "chart-marker";
    link.dataset.marker = marker.id;
    link.dataset.severity = marker.severity;
    link.href = marker.href;
    link.title = `${marker.label}\n${formatMoment(marker.at * 1000, this.zone)}`;
    link.setAttribute("aria-label", link.title);
    layer.append(link);
    return link;
  }
}

/** @param {import("./chart.js").Chart} chart @returns {HTMLElement} */
function layerOf(chart) {
  const found = chart.plot.over.querySelector(".chart-markers");
  if (found !== null) return found;
  const layer = document.createElement("div");
  layer.className = "chart-markers";
  chart.plot.over.append(layer);
  return layer;
}
