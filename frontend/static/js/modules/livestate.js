// @ts-check
/** The live word in the top bar: Live, Paused, Reconnecting (n), Stale 42 s. Listens to "fleetdeck:live" on document. */
import { setStatus } from "../dom.js";
import { duration } from "../format.js";

/**
 * @param {{ state: string, seconds?: number, attempt?: number }} detail
 * @returns {[string, string]} tone and word
 */
function words(detail) {
  switch (detail.state) {
    case "live": return ["ok", gettext("Live")];
    case "paused": return ["silenced", gettext("Paused")];
    case "reconnecting": return ["progress", interpolate(gettext("Reconnecting (%s)"), [detail.attempt ?? 1])];
    case "polling": return ["ok", gettext("Every 15 s")];
    case "ended": return ["unknown", gettext("Stopped")];
    default: return ["unknown", interpolate(gettext("Stale %s"), [duration(detail.seconds ?? 0)])];
  }
}

/** @param {HTMLElement} el */
export function mount(el) {
  /** @param {Event} event */
  const onLive = (event) => {
    const { detail } = /** @type {CustomEvent} */ (event);
    const [tone, word] = words(detail);
    el.hidden = false;
    setStatus(el, tone, word);
    el.setAttribute("aria-label", interpolate(detail.state === "paused" ? gettext("%s. Resume") : gettext("%s. Pause"), [word]));
  };
  const onClick = () => document.dispatchEvent(new CustomEvent("fleetdeck:live-toggle"));
  document.addEventListener("fleetdeck:live", onLive);
  el.addEventListener("click", onClick);
  document.dispatchEvent(new CustomEvent("fleetdeck:live-ask")); // whoever feeds live values may have spoken before
  return () => {
    document.removeEventListener("fleetdeck:live", onLive);
    el.removeEventListener("click", onClick);
  };
}
