// The parts of a chart that need no browser: the wire, the model, marks, labels, keys and pages of the table.
import assert from "node:assert/strict";
import test from "node:test";

import "./globals.mjs";
import { nextIndex, Speaker } from "../../frontend/static/js/charts/keyboard.js";
import { ChartModel, joined } from "../../frontend/static/js/charts/model.js";
import { breachSpans, spread } from "../../frontend/static/js/charts/overlays.js";
import { pageOf } from "../../frontend/static/js/charts/table.js";
import { byteMarks, timeLabel, timeMarks } from "../../frontend/static/js/charts/ticks.js";
import { pointsFor, TimeWindow } from "../../frontend/static/js/charts/window.js";
import { decodeSeries } from "../../frontend/static/js/charts/wire.js";

const GIB = 1024 ** 3;

function encode(header, columns) {
  let text = JSON.stringify(header);
  text += " ".repeat((4 - (text.length % 4)) % 4);
  const buffer = new ArrayBuffer(8 + text.length + columns.flat().length * 4);
  const bytes = new Uint8Array(buffer);
  const view = new DataView(buffer);
  bytes.set(new TextEncoder().encode("FDS1"), 0);
  view.setUint32(4, text.length, true);
  bytes.set(new TextEncoder().encode(text), 8);
  columns.flat().forEach((value, index) => view.setFloat32(8 + text.length + index * 4, value, true));
  return buffer;
}

const wire = (series, points, stepSeconds = 5, fromMs = 0) => ({ stepSeconds, level: "raw", fromMs, points, series });
const one = (gpu, mean, peak = mean, metric = "utilization_percent") => ({ gpu, server: null, metric, mean, peak });
const key = (gpu, metric = "utilization_percent") => `gpu:${gpu}/${metric}`;

test("series arrive as float32 with gaps as null", () => {
  const header = { step_seconds: 10, level: "1m", from_ms: 5_000, points: 3, series: [{ gpu: 12, server: null, metric: "power_watts" }] };
  const result = decodeSeries(encode(header, [[100, Number.NaN, 300], [110, Number.NaN, 700]]));
  assert.deepEqual(result.series[0], { gpu: 12, server: null, endpoint: null, metric: "power_watts", mean: [100, null, 300], peak: [110, null, 700] });
  assert.deepEqual([result.stepSeconds, result.fromMs, result.points], [10, 5_000, 3]);
});

test("series of an endpoint become its lines", () => {
  const header = { step_seconds: 10, level: "raw", from_ms: 0, points: 2, series: [{ endpoint: 7, metric: "total_p99_ms" }] };
  const model = new ChartModel([{ key: "endpoint:7/total_p99_ms" }, { key: "endpoint:7/total_p50_ms" }]);
  model.load(decodeSeries(encode(header, [[100, 200], [100, 200]])));
  assert.deepEqual(model.aligned().slice(1, 4), [[100, 200], [100, 200], [null, null]]);
});

test("bytes that are no series are refused", () => {
  assert.throws(() => decodeSeries(new ArrayBuffer(4)), /not a series/);
  assert.throws(() => decodeSeries(new TextEncoder().encode("{\"detail\": 1}").buffer), /not a series/);
});

test("a chart ends at its last reading and a missing line is a gap, not zero", () => {
  const model = new ChartModel([{ key: key(1) }, { key: key(2) }]);
  model.load(wire([one(1, [10, 20, null, null])], 4));
  assert.deepEqual(model.aligned(), [[0, 5], [10, 20], [10, 20], [null, null], [null, null]]);
});

test("bytes can be drawn as a share of a total", () => {
  const model = new ChartModel([{ key: "server:3/host.memory_used_bytes", scale: 100 / 200 }]);
  model.load(wire([{ gpu: null, server: 3, metric: "host.memory_used_bytes", mean: [50], peak: [100] }], 1));
  assert.deepEqual(model.aligned().slice(1), [[25], [50]]);
  model.append("server:3/host.memory_used_bytes", 5, 150);
  assert.equal(model.latest("server:3/host.memory_used_bytes").value, 75);
});

test("live readings extend the line; a missing one is one gap", () => {
  const model = new ChartModel([{ key: key(1) }]);
  model.load(wire([one(1, [10, 20])], 2));
  model.append(key(1), 10.2, 30);
  model.append(key(1), 20.1, 40);
  assert.deepEqual(model.aligned()[0], [0, 5, 10, 15, 20]);
  assert.deepEqual(model.aligned()[1], [10, 20, 30, null, 40]);
});

test("readings whose phase lies at the edge of a bucket leave no false gap", () => {
  const model = new ChartModel([{ key: key(1) }]);
  model.load(wire([one(1, [1])], 1));
  for (const at of [4.98, 10.01, 14.97, 20.02, 24.99]) model.append(key(1), at, 2);
  assert.ok(!model.aligned()[1].includes(null), String(model.aligned()[1]));
});

test("several readings of one bucket become their mean and their peak", () => {
  const model = new ChartModel([{ key: key(1) }]);
  model.load(wire([one(1, [0])], 1, 60));
  for (const [at, value] of [[60, 10], [65, 20], [70, 90]]) model.append(key(1), at, value);
  assert.deepEqual(model.aligned().slice(1).map((column) => column.at(-1)), [40, 90]);
});

test("a reading that was already taken, or comes late, changes nothing", () => {
  const model = new ChartModel([{ key: key(1) }]);
  model.load(wire([one(1, [1])], 1));
  assert.equal(model.append(key(1), 10, 5), true);
  assert.equal(model.append(key(1), 10, 5), false);
  assert.equal(model.append(key(1), 3, 7), false);
  assert.deepEqual(model.aligned()[1], [1, null, 5]);
});

test("a clock that is wrong by a year does not fill the memory", () => {
  const model = new ChartModel([{ key: key(1) }]);
  model.load(wire([one(1, [1])], 1));
  assert.equal(model.append(key(1), 31_536_000, 5), false);
  assert.equal(model.x.length, 1);
});

/** A grid of `length` buckets with a reading at each of the places. */
function grid(length, places) {
  const values = new Array(length).fill(null);
  for (const place of places) values[place] = place;
  return values;
}
const line = (values, every = 1) => joined(values, values, every);
const gaps = (values) => values.filter((value) => value === null).length;

test("readings five seconds apart on a grid of one are joined, a missing one is a gap", () => {
  const drawn = line(grid(56, [0, 5, 10, 15, 20, 25, 30, 40, 45, 50, 55]));
  assert.equal(gaps(drawn), 9);
  assert.ok(drawn.slice(31, 40).every((value) => value === null));
});

test("readings that come sooner while somebody looks are judged by their own distance", () => {
  const drawn = line(grid(51, [0, 5, 10, 15, 20, 25, 30, 32, 34, 36, 38, 40, 44, 46, 48, 50]));
  assert.deepEqual([gaps(drawn), drawn[42]], [3, null]);
});

test("a reading a second late leaves no gap, and a full grid is left as it is", () => {
  assert.equal(gaps(line(grid(21, [0, 2, 4, 6, 8, 11, 12, 14, 16, 18, 20]))), 0);
  assert.deepEqual(line([1, 2, 3]), [1, 2, 3]);
  assert.deepEqual(line([1, null, 2]), [1, null, 2]);
});

test("a reading that the store repeats until the next one is one point, and a steady value stays where it ends", () => {
  assert.deepEqual(line([1, 1, 4, 4, 4, 9], 3), [1, undefined, 4, undefined, undefined, 9]);
  assert.deepEqual(line([0, 0, 0, 0, 0, 0, 90, 90], 2), [0, undefined, 0, undefined, 0, undefined, 90, 90]);
});

test("a gap between repeated readings stays a gap", () => {
  assert.deepEqual(line([1, 1, 2, 2, 3, 3, null, null, null, null, 4, 4, 5, 5], 2).slice(6, 10), [null, null, null, null]);
});

test("a repeat with another peak is a reading of its own", () => {
  assert.deepEqual(joined([5, 5], [5, 9], 2), [5, 5]);
});

test("old points are dropped as the window slides, and what follows keeps its bucket", () => {
  const model = new ChartModel([{ key: key(1) }]);
  model.load(wire([one(1, [1, 2, 3, 4])], 4));
  model.append(key(1), 20, 5);
  model.prune(11);
  assert.deepEqual(model.x, [10, 15, 20]);
  model.append(key(1), 21, 7);
  assert.deepEqual(model.aligned()[1], [3, 4, 6]);
});

test("the ninth line and those after it are one band from lowest mean to highest peak", () => {
  const lines = Array.from({ length: 10 }, (_, index) => ({ key: key(index) }));
  const model = new ChartModel(lines);
  model.load(wire(lines.map((_, index) => one(index, [index], [index * 10])), 1));
  const data = model.aligned();
  assert.equal(data.length, 1 + 8 * 2 + 2);
  assert.deepEqual(data.slice(-2), [[8], [90]]);
});

test("four cards of one name are four lines", () => {
  const model = new ChartModel([1, 2, 3, 4].map((gpu) => ({ key: key(gpu) })));
  model.load(wire([1, 2, 3, 4].map((gpu) => one(gpu, [gpu * 10])), 1));
  assert.deepEqual(model.aligned().slice(1).filter((_, index) => index % 2 === 0), [[10], [20], [30], [40]]);
});

test("stretches over a threshold are found, across points that are merely between readings", () => {
  const data = [[0, 5, 10, 15, 20, 25], [80, 90, undefined, 91, 70, 95], [null, null, null, null, null, null]];
  assert.deepEqual(breachSpans(data, 83), [[5, 20], [25, 25]]);
  assert.deepEqual(breachSpans([[0, 5], [90, null]], 83), [[0, 5]]);
});

test("labels at the ends of lines are moved apart and stay inside", () => {
  assert.deepEqual(spread([50, 51, 10], 12, 0, 100), [50, 62, 10]);
  assert.deepEqual(spread([99, 99, 99], 12, 0, 100), [76, 88, 100]);
});

test("time marks are round on the wall clock of the zone, also where summer time begins", () => {
  const from = Date.parse("2025-10-25T22:00:00Z") / 1000; // midnight in Paris
  const marks = timeMarks(from, from + 25 * 3_600, 9, "Europe/Paris");
  assert.deepEqual(marks.map((at) => timeLabel(at, 10_800, "Europe/Paris")), ["10-26", "03:00", "06:00", "09:00", "12:00", "15:00", "18:00", "21:00", "10-27"]);
  const kolkata = timeMarks(from, from + 6 * 3_600, 6, "Asia/Kolkata");
  assert.ok(kolkata.every((at) => timeLabel(at, 3_600, "Asia/Kolkata").endsWith(":00")));
});

test("minutes and seconds are marked when the window is short", () => {
  assert.deepEqual(timeMarks(100, 1_000, 6, "UTC"), [300, 600, 900]);
  assert.equal(timeLabel(905, 5, "UTC"), "00:15:05");
  assert.equal(timeLabel(900, 300, "UTC"), "00:15");
});

test("memory is marked at whole GiB", () => {
  assert.deepEqual(byteMarks(0, 140.4 * GIB, 4), [0, 40, 80, 120].map((gib) => gib * GIB));
});

test("arrow keys move by one, with shift by ten, and stop at the ends", () => {
  const press = (keyName, shiftKey = false) => nextIndex({ key: keyName, shiftKey }, 5, 20);
  assert.deepEqual([press("ArrowLeft"), press("ArrowRight"), press("ArrowLeft", true), press("Home"), press("End")], [4, 6, 0, 0, 19]);
  assert.equal(press("ArrowRight", true), 15);
  assert.equal(press("a"), null);
  assert.equal(nextIndex({ key: "End", shiftKey: false }, 0, 0), null);
});

test("a held key speaks at once and then once a second, the newest value only", () => {
  const said = [];
  const timers = [];
  const speaker = new Speaker((text) => said.push(text), (callback) => timers.push(callback));
  for (const text of ["a", "b", "c"]) speaker.speak(text);
  assert.deepEqual(said, ["a"]);
  timers.shift()();
  assert.deepEqual(said, ["a", "c"]);
  timers.shift()();
  speaker.speak("d");
  assert.deepEqual(said, ["a", "c", "d"]);
});

test("the table shows the newest points first, 25 a page, without empty rows", () => {
  const model = new ChartModel([{ key: key(1) }]);
  const values = Array.from({ length: 60 }, (_, index) => (index % 10 === 9 ? null : index));
  model.load(wire([one(1, values)], 60));
  const first = pageOf(model, 0);
  assert.deepEqual([first.indexes.length, first.indexes[0], first.pages], [25, 58, 3]);
  assert.equal(pageOf(model, 2).indexes.length, 4);
  assert.equal(pageOf(model, 9).indexes.at(-1), 0);
});

test("a window slides with the panel's clock, stands still while zoomed, and comes back", () => {
  let now = 1_000;
  const time = new TimeWindow({ from: 120, to: 1_020, isLive: true }, () => now);
  now += 60;
  assert.deepEqual(time.current(), { from: 180, to: 1_080 });
  time.zoom(500, 600);
  now += 60;
  assert.deepEqual(time.current(), { from: 500, to: 600 });
  assert.equal(time.isSliding, false);
  assert.equal(time.unzoom(), true);
  assert.deepEqual(time.current(), { from: 240, to: 1_140 });
  time.zoom(500, 501);
  assert.deepEqual(time.current(), { from: 495.5, to: 505.5 });
});

test("a range of the past neither slides nor appends; a month slides without appending", () => {
  assert.equal(new TimeWindow({ from: 0, to: 900, isLive: false }, () => 5_000).isLiveAppended, false);
  const month = new TimeWindow({ from: 0, to: 2_592_000, isLive: true }, () => 2_592_000);
  assert.deepEqual([month.isSliding, month.isLiveAppended], [true, false]);
});

test("no more points are asked for than a chart shows or seconds there are", () => {
  assert.deepEqual([60, 300, 900, 86_400].map(pointsFor), [62, 302, 460, 460]);
});
