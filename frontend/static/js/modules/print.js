// @ts-check
/** A button that prints the page; browsers save it as PDF from there. */

/** @param {HTMLElement} el */
export function mount(el) {
  const onClick = () => window.print();
  el.addEventListener("click", onClick);
  return () => el.removeEventListener("click", onClick);
}
