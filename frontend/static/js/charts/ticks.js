// @ts-check
/** Marks of the axes: times in the viewer's zone, memory in whole GiB. */
import { zoned } from "./format.js";

/** Steps of time marks in seconds. */
const STEPS = [
  1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 345_600,
  604_800,
];
const GIB = 1024 ** 3;
const BYTE_STEPS = [0.25, 0.5, 1, 2, 4, 8, 16, 20, 40, 64, 80, 128, 160, 256, 512, 1_024].map((gib) => gib * GIB);

/**
 * Marks at round wall-clock times of a zone, whatever its offset and across changes of summer time.
 * @param {number} from seconds
 * @param {number} to seconds
 * @param {number} most how many fit
 * @param {string} zone
 * @returns {number[]} seconds
 */
export function timeMarks(from, to, most, zone) {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? STEPS[STEPS.length - 1];
  const quarter = 900;
  const stride = Math.min(step, quarter);
  const marks = [];
  let at = Math.ceil(from / stride) * stride;
  while (at <= to) {
    if (step > quarter && !isRound(at, step, zone)) {
      at += quarter;
      continue;
    }
    marks.push(at);
    at = step <= quarter ? at + step : nextRound(at, step, zone);
  }
  return marks;
}

/**
 * The next round time of the wall clock after one: a step later, or some hours less or more where summer time changed.
 * @param {number} at @param {number} step @param {string} zone
 */
function nextRound(at, step, zone) {
  const shifts = [0, -3_600, 3_600, -1_800, 1_800];
  const found = shifts.find((shift) => at + step + shift > at && isRound(at + step + shift, step, zone));
  return at + (found === undefined ? 900 : step + found);
}

/** @param {number} at @param {number} step @param {string} zone */
function isRound(at, step, zone) {
  const { date, time } = zoned(at * 1000, zone);
  const [hours, minutes] = time.split(":").map(Number);
  const ofDay = hours * 3_600 + minutes * 60;
  if (step < 86_400) return ofDay % step === 0;
  const day = Date.parse(`${date}T00:00:00Z`) / 86_400_000;
  return ofDay === 0 && day % (step / 86_400) === 0;
}

/**
 * The text of a time mark: the date at midnight, else hours and minutes, with seconds when marks are that near.
 * @param {number} at seconds
 * @param {number} step seconds between marks
 * @param {string} zone
 */
export function timeLabel(at, step, zone) {
  const { date, time } = zoned(at * 1000, zone);
  if (time === "00:00:00" && step >= 900) return date.slice(5);
  return step < 60 ? time : time.slice(0, 5);
}

/**
 * Marks of bytes at whole numbers of GiB.
 * @param {number} from
 * @param {number} to
 * @param {number} most
 */
export function byteMarks(from, to, most) {
  const step = BYTE_STEPS.find((one) => (to - from) / one <= most) ?? BYTE_STEPS[BYTE_STEPS.length - 1];
  const marks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) marks.push(at);
  return marks;
}
