// @ts-check
/**
 * Series as the panel sends them to charts: "FDS1", header length (uint32), a JSON header, then float32 columns.
 *
 * Numbers are little-endian. Per series come `points` means and `points` maxima; NaN is a gap. Bucket i starts at
 * `from_ms + i * step_seconds`.
 */

export const SERIES_TYPE = "application/vnd.fleetdeck.series";

/**
 * @typedef {object} WireSeries
 * @property {number | null} gpu
 * @property {number | null} server
 * @property {number | null} endpoint
 * @property {string} metric
 * @property {(number | null)[]} mean
 * @property {(number | null)[]} peak
 * @typedef {object} WireResult
 * @property {number} stepSeconds
 * @property {string} level
 * @property {number} fromMs
 * @property {number} points
 * @property {WireSeries[]} series
 */

/**
 * @param {ArrayBuffer} buffer
 * @returns {WireResult}
 * @throws {Error} when the bytes are not a series
 */
export function decodeSeries(buffer) {
  const view = new DataView(buffer);
  const magic = buffer.byteLength >= 8 ? String.fromCharCode(...new Uint8Array(buffer, 0, 4)) : "";
  if (magic !== "FDS1") throw new Error("not a series");
  const headerBytes = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, headerBytes)));
  const points = header.points;
  let offset = 8 + headerBytes;
  const column = () => {
    const values = readColumn(view, offset, points);
    offset += points * 4;
    return values;
  };
  const series = header.series.map((/** @type {any} */ one) => ({
    gpu: one.gpu ?? null,
    server: one.server ?? null,
    endpoint: one.endpoint ?? null,
    metric: one.metric,
    mean: column(),
    peak: column(),
  }));
  return { stepSeconds: header.step_seconds, level: header.level, fromMs: header.from_ms, points, series };
}

/**
 * @param {DataView} view
 * @param {number} offset
 * @param {number} points
 * @returns {(number | null)[]}
 */
function readColumn(view, offset, points) {
  const values = new Array(points);
  for (let index = 0; index < points; index += 1) {
    const value = view.getFloat32(offset + index * 4, true);
    values[index] = Number.isNaN(value) ? null : value;
  }
  return values;
}
