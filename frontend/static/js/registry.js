// @ts-check
/**
 * Every behaviour by the name that templates use in `data-module`. Literal import paths, so that collectstatic can give
 * each file a hashed name. A module is loaded when a page first has an element that wants it.
 *
 * @typedef {{ mount: (el: HTMLElement) => (() => void) | void }} Behaviour
 * @type {Record<string, () => Promise<Behaviour>>}
 */
export const registry = {
  arrival: () => import("./modules/arrival.js"),
  awaited: () => import("./modules/awaited.js"),
  charts: () => import("./modules/charts.js"),
  copy: () => import("./modules/copy.js"),
  dialog: () => import("./modules/dialog.js"),
  drop: () => import("./modules/drop.js"),
  elapsed: () => import("./modules/elapsed.js"),
  endpoint: () => import("./modules/endpoint.js"),
  endpointlist: () => import("./modules/endpointlist.js"),
  filters: () => import("./modules/filters.js"),
  fleetlist: () => import("./modules/fleetlist.js"),
  leaselist: () => import("./modules/leaselist.js"),
  livepart: () => import("./modules/livepart.js"),
  livestate: () => import("./modules/livestate.js"),
  logview: () => import("./modules/logview.js"),
  numbers: () => import("./modules/numbers.js"),
  once: () => import("./modules/once.js"),
  overview: () => import("./modules/overview.js"),
  palette: () => import("./modules/palette.js"),
  passkeyadd: () => import("./modules/passkeyadd.js"),
  passkeylogin: () => import("./modules/passkeylogin.js"),
  picks: () => import("./modules/picks.js"),
  poke: () => import("./modules/poke.js"),
  print: () => import("./modules/print.js"),
  rail: () => import("./modules/rail.js"),
  theme: () => import("./modules/theme.js"),
  toasts: () => import("./modules/toasts.js"),
  typename: () => import("./modules/typename.js"),
};
