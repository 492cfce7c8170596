// @ts-check
/** One request for all the charts that are on the screen. */
import { decodeSeries, SERIES_TYPE } from "./wire.js";

/**
 * @param {string} url of the subject's series
 * @param {string[]} metrics
 * @param {{from: number, to: number}} range seconds
 * @param {number} points
 * @param {AbortSignal} signal
 * @returns {Promise<import("./wire.js").WireResult>}
 */
export async function fetchSeries(url, metrics, range, points, signal) {
  const query = new URLSearchParams({
    metrics: [...new Set(metrics)].join(","),
    from: range.from.toFixed(3),
    to: range.to.toFixed(3),
    points: String(points),
  });
  const response = await fetch(`${url}?${query}`, { headers: { Accept: SERIES_TYPE }, signal });
  if (!response.ok) throw new Error(`series: ${response.status}`);
  return decodeSeries(await response.arrayBuffer());
}
