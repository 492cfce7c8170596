// @ts-check
/** High risk: the button of a confirmation works once the object's name is typed. The server checks it again. */

/** @param {HTMLElement} el */
export function mount(el) {
  const input = /** @type {HTMLInputElement | null} */ (el.querySelector("[data-type-name]"));
  const button = /** @type {HTMLButtonElement | null} */ (el.querySelector("[data-confirm]"));
  if (!input || !button) return undefined;
  const check = () => { button.disabled = input.value !== input.dataset.typeName; };
  check();
  input.addEventListener("input", check);
  return () => input.removeEventListener("input", check);
}
