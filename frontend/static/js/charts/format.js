// @ts-check
/** Readings in the words of the metric catalogue, and moments in a zone. */
import { dateTime, number, offsetLabel, unitOf, withUnit } from "../format.js";

/** The kind of number for each unit of the metric catalogue. @type {Record<string, string>} */
const KIND_OF_UNIT = {
  percent: "percent",
  bytes: "gib",
  bytes_per_second: "mb_per_second",
  watts: "watts",
  celsius: "celsius",
  mhz: "mhz",
  load: "load",
  per_second: "per_second",
  milliseconds: "latency",
  requests: "count",
};

/** @param {string} unit */
export function unitSymbol(unit) {
  return unitOf(KIND_OF_UNIT[unit]);
}

/** The number alone. @param {number | null | undefined} value @param {string} unit */
export function formatNumber(value, unit) {
  return number(value, KIND_OF_UNIT[unit]);
}

/** The number with its unit. @param {number | null | undefined} value @param {string} unit */
export function formatValue(value, unit) {
  return withUnit(value, KIND_OF_UNIT[unit]);
}

/** Formatters are dear to make. @type {Map<string, Intl.DateTimeFormat>} */
const clocks = new Map();

/** @param {string} zone */
function clockOf(zone) {
  let clock = clocks.get(zone);
  if (clock === undefined) {
    clock = new Intl.DateTimeFormat("en-CA", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
    clocks.set(zone, clock);
  }
  return clock;
}

/**
 * Wall-clock parts of a moment in an IANA zone.
 * @param {number} ms
 * @param {string} zone
 */
export function zoned(ms, zone) {
  const found = Object.fromEntries(clockOf(zone).formatToParts(ms).map((part) => [part.type, part.value]));
  return { date: `${found.year}-${found.month}-${found.day}`, time: `${found.hour}:${found.minute}:${found.second}` };
}

/** "2026-03-10 14:05:09 UTC+8" @param {number} ms @param {string} zone */
export function formatMoment(ms, zone) {
  return `${dateTime(ms, zone)} ${zone === "UTC" ? "UTC" : offsetLabel(ms, zone)}`;
}
