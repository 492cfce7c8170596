// @ts-check
/** A native dialog: its close buttons, a press on the backdrop, and `data-open` (open as soon as it is there). */

/** @param {HTMLElement} el */
export function mount(el) {
  const dialog = /** @type {HTMLDialogElement} */ (el);
  /** @param {MouseEvent} event */
  const onClick = (event) => {
    const target = /** @type {Element} */ (event.target);
    if (target === dialog || target.closest("[data-dialog-close]")) dialog.close();
  };
  dialog.addEventListener("click", onClick);
  if ("open" in dialog.dataset && !dialog.open) dialog.showModal();
  return () => {
    dialog.removeEventListener("click", onClick);
    if (dialog.open) dialog.close();
  };
}
