// @ts-check
/** The navigation's width: with words or icons only, kept in a cookie so that the next page starts right. */

/** @param {HTMLElement} el */
export function mount(el) {
  const button = el.querySelector("[data-rail-toggle]");
  if (!button) return undefined;
  const onClick = () => {
    const html = document.documentElement;
    const rail = html.dataset.rail === "collapsed" ? "open" : "collapsed";
    html.dataset.rail = rail;
    button.setAttribute("aria-expanded", String(rail === "open"));
    document.cookie = `fleetdeck_rail=${rail}; path=/; max-age=31536000; samesite=lax`;
    window.dispatchEvent(new Event("resize")); // charts measure themselves again
  };
  button.addEventListener("click", onClick);
  return () => button.removeEventListener("click", onClick);
}
