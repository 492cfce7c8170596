// @ts-check
/**
 * Times of the page: relative words grow older, and a viewer without a chosen zone gets the browser's (kept in a cookie, so
 * that the server writes the next page in it).
 */
import { ago, dateTime, offsetLabel } from "./format.js";

const REFRESH_MS = 5000;

/** @param {HTMLElement} html */
function adoptBrowserZone(html) {
  const source = html.dataset.zoneSource;
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!own || (source !== "browser" && source !== "none")) return;
  document.cookie = `fleetdeck_zone=${own}; path=/; max-age=31536000; samesite=lax`;
  if (html.dataset.zone === own) return;
  html.dataset.zone = own;
  for (const element of document.querySelectorAll("time[datetime]")) rewrite(/** @type {HTMLTimeElement} */ (element));
  for (const label of document.querySelectorAll("[data-zone-label]")) label.textContent = offsetLabel(Date.now());
}

/** @param {HTMLTimeElement} element */
function rewrite(element) {
  const at = Date.parse(element.dateTime);
  element.textContent = "zoneless" in element.dataset ? dateTime(at) : `${dateTime(at)} ${offsetLabel(at)}`;
}

function refresh() {
  if (document.hidden) return;
  for (const word of document.querySelectorAll("[data-ago]")) {
    const time = word.previousElementSibling;
    if (!(time instanceof HTMLTimeElement)) continue;
    const text = ago(Date.parse(time.dateTime), Date.now());
    if (word.textContent !== text) word.textContent = text;
  }
}

/** Begin; once a page. */
export function start() {
  adoptBrowserZone(document.documentElement);
  setInterval(refresh, REFRESH_MS);
}
