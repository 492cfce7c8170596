// @ts-check
/** One request for all the charts that are on the screen. */
import { decodeSeries, SERIES_TYPE } from "./wire.js";

/**
 * @param {string[]} urls of the subjects' series
 * @param {string[]} metrics
 * @param {{from: number, to: number}} range seconds
 * @param {number} points
 * @param {AbortSignal} signal
 * @returns {Promise<import("./wire.js").WireResult>} all of them on the grid that they share
 */
export async function fetchSeries(urls, metrics, range, points, signal) {
  const query = new URLSearchParams({
    metrics: [...new Set(metrics)].join(","),
    from: range.from.toFixed(3),
    to: range.to.toFixed(3),
    points: String(points),
  });
  const answers = await Promise.all(urls.map((url) => fetchOne(`${url}?${query}`, signal)));
  return { ...answers[0], series: answers.flatMap((answer) => answer.series) };
}

/** @param {string} url @param {AbortSignal} signal */
async function fetchOne(url, signal) {
  const response = await fetch(url, { headers: { Accept: SERIES_TYPE }, signal });
  if (!response.ok) throw new Error(`series: ${response.status}`);
  return decodeSeries(await response.arrayBuffer());
}
