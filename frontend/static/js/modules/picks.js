// @ts-check
/**
 * Rows that are ticked: how many stands at the buttons (`[data-picked]`), which work once there is one; `data-at-most` bounds
 * them, and the box `[data-pick-all]` ticks all rows. Without scripts the server does the same checks.
 */

/** @param {HTMLElement} root */
export function mount(root) {
  const most = Number(root.dataset.atMost ?? Infinity);
  const boxes = () => /** @type {HTMLInputElement[]} */ ([...root.querySelectorAll("[data-pick]")]);
  const all = /** @type {HTMLInputElement | null} */ (root.querySelector("[data-pick-all]"));
  const show = () => {
    const picked = boxes().filter((box) => box.checked).length;
    for (const box of boxes()) box.disabled = !box.checked && picked >= most;
    for (const target of root.querySelectorAll("[data-picked]")) target.textContent = String(picked);
    for (const button of root.querySelectorAll("[data-needs-pick]")) button.toggleAttribute("disabled", picked === 0);
    if (all) all.checked = picked > 0 && picked === boxes().length;
  };
  /** @param {Event} event */
  const onChange = (event) => {
    if (event.target === all) for (const box of boxes()) box.checked = /** @type {HTMLInputElement} */ (all).checked;
    show();
  };
  root.addEventListener("change", onChange);
  show();
  return () => root.removeEventListener("change", onChange);
}
