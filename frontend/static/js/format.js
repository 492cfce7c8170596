// @ts-check
/** Numbers and times as people read them: the rules of frontend/formatting.py, for values that arrive live. */

const GIB = 1024 ** 3;

/**
 * @param {number} value
 * @param {number} digits
 */
function fixed(value, digits) {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** @param {number} value */
function megabytes(value) {
  const scaled = value / 1e6;
  return fixed(scaled, Math.abs(scaled) < 100 ? 1 : 0);
}

/** @type {Record<string, { text: (value: number) => string, unit: string }>} */
const KINDS = {
  gib: { text: (v) => fixed(v / GIB, 1), unit: "GiB" },
  mb_per_second: { text: megabytes, unit: "MB/s" },
  watts: { text: (v) => fixed(v, 0), unit: "W" },
  kwh: { text: (v) => fixed(v, 2), unit: "kWh" },
  celsius: { text: (v) => fixed(v, 0), unit: "°C" },
  percent: { text: (v) => fixed(v, 0), unit: "%" },
  mhz: { text: (v) => fixed(v, 0), unit: "MHz" },
  load: { text: (v) => fixed(v, 2), unit: "" },
  count: { text: (v) => fixed(v, 0), unit: "" },
  latency: { text: (v) => (Math.abs(v) < 1000 ? `${fixed(v, 0)} ms` : `${fixed(v / 1000, 2)} s`), unit: "" },
  per_second: { text: (v) => fixed(v, Math.abs(v) < 100 ? 2 : 0), unit: "/s" },
};

/**
 * A value without its unit; a dash when it is missing.
 * @param {number | null | undefined} value
 * @param {string} kind
 */
export function number(value, kind) {
  return value === null || value === undefined || Number.isNaN(value) ? "—" : KINDS[kind].text(value);
}

/**
 * A value with its unit; a dash when it is missing.
 * @param {number | null | undefined} value
 * @param {string} kind
 */
export function withUnit(value, kind) {
  if (value === null || value === undefined || Number.isNaN(value)) return "—";
  const { unit } = KINDS[kind];
  return `${KINDS[kind].text(value)}${["", "%", "/s"].includes(unit) ? "" : "\u00a0"}${unit}`;
}

/**
 * The unit of a kind, for headers and axes.
 * @param {string} kind
 */
export function unitOf(kind) {
  return KINDS[kind].unit;
}

/**
 * The two largest units of a duration: "3 m 12 s".
 * @param {number} seconds
 */
export function duration(seconds) {
  const total = Math.floor(Math.abs(seconds));
  const parts = { days: Math.floor(total / 86400), hours: Math.floor(total / 3600) % 24, minutes: Math.floor(total / 60) % 60, seconds: total % 60 };
  /** @param {string} words */
  const say = (words) => interpolate(words, parts, true);
  if (parts.days) return say(parts.hours ? gettext("%(days)s d %(hours)s h") : gettext("%(days)s d"));
  if (parts.hours) return say(parts.minutes ? gettext("%(hours)s h %(minutes)s m") : gettext("%(hours)s h"));
  if (parts.minutes) return say(parts.seconds ? gettext("%(minutes)s m %(seconds)s s") : gettext("%(minutes)s m"));
  return say(gettext("%(seconds)s s"));
}

/**
 * How long ago (rounded down), or in how long (to the nearest), in one unit.
 * @param {number} then Unix ms
 * @param {number} now Unix ms
 */
export function ago(then, now) {
  const seconds = (now - then) / 1000;
  const size = Math.abs(seconds);
  const past = seconds > 0;
  /** @param {number} unit */
  const n = (unit) => Math.floor(size / unit + (past ? 0 : 0.5));
  if (size >= 86400) return interpolate(past ? ngettext("%s day ago", "%s days ago", n(86400)) : ngettext("in %s day", "in %s days", n(86400)), [n(86400)]);
  if (size >= 3600) return interpolate(past ? ngettext("%s hour ago", "%s hours ago", n(3600)) : ngettext("in %s hour", "in %s hours", n(3600)), [n(3600)]);
  if (size >= 60) return interpolate(past ? ngettext("%s minute ago", "%s minutes ago", n(60)) : ngettext("in %s minute", "in %s minutes", n(60)), [n(60)]);
  if (size >= 5) return interpolate(past ? ngettext("%s second ago", "%s seconds ago", n(1)) : ngettext("in %s second", "in %s seconds", n(1)), [n(1)]);
  return gettext("just now");
}

/** The viewer's IANA zone. */
export function zone() {
  return document.documentElement.dataset.zone || "UTC";
}

/**
 * A time in a zone as year to second.
 * @param {number} at Unix ms
 * @param {string} [timeZone]
 */
export function dateTime(at, timeZone = zone()) {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
  }).formatToParts(at);
  /** @param {string} type */
  const part = (type) => parts.find((p) => p.type === type)?.value ?? "";
  return `${part("year")}-${part("month")}-${part("day")} ${part("hour")}:${part("minute")}:${part("second")}`;
}

/**
 * The offset of a zone at a time: "UTC+8".
 * @param {number} at Unix ms
 * @param {string} [timeZone]
 */
export function offsetLabel(at, timeZone = zone()) {
  const name = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "shortOffset" }).formatToParts(at).find((p) => p.type === "timeZoneName")?.value ?? "UTC";
  return name.replace("GMT", "UTC").replace("-", "−");
}
