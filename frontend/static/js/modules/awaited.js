// @ts-check
/**
 * A list whose filters hide everything: looks now and then whether something matches by now, and then loads the page again;
 * not while somebody is about to change the filters, nor under an open dialog.
 */
const LOOK_MS = 10_000;

/** Whether loading the page again would take something from under somebody's hands. */
function isBusy() {
  const active = document.activeElement;
  return active?.matches("input, select, textarea, summary") || document.querySelector("dialog[open], details.drop[open]") !== null;
}

/** @param {HTMLElement} _el */
export function mount(_el) {
  let hasEnded = false;
  async function look() {
    if (document.hidden || isBusy()) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok || answer.redirected || hasEnded) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (page.querySelector("main") !== null && page.querySelector('[data-module~="awaited"]') === null && !isBusy()) location.reload();
    } catch {
      // The panel is away for a moment; the next look finds out.
    }
  }
  const timer = setInterval(look, LOOK_MS);
  return () => {
    hasEnded = true;
    clearInterval(timer);
  };
}
