// @ts-check
/** A menu under its button (details.drop): closes with Escape and with a press elsewhere. */

/** @param {HTMLElement} el */
export function mount(el) {
  const details = /** @type {HTMLDetailsElement} */ (el);
  /** @param {Event} event */
  const elsewhere = (event) => {
    if (details.open && !details.contains(/** @type {Node} */ (event.target))) details.open = false;
  };
  /** @param {KeyboardEvent} event */
  const escape = (event) => {
    if (event.key !== "Escape" || !details.open) return;
    details.open = false;
    details.querySelector("summary")?.focus();
  };
  document.addEventListener("pointerdown", elsewhere);
  details.addEventListener("keydown", escape);
  return () => {
    document.removeEventListener("pointerdown", elsewhere);
    details.removeEventListener("keydown", escape);
  };
}
