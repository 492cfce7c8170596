// @ts-check
/** A form that is sent once: after a press its button waits (`data-wait` is what it says then). The server checks it again. */

/** @param {HTMLElement} el */
export function mount(el) {
  const form = /** @type {HTMLFormElement} */ (el);
  /** @type {string | null} */
  let words = null;
  /** @param {SubmitEvent} event */
  const onSubmit = (event) => {
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "true";
    const button = /** @type {HTMLElement | null} */ (event.submitter);
    if (button?.dataset.wait) {
      words = button.textContent;
      button.textContent = button.dataset.wait;
    }
    button?.setAttribute("aria-disabled", "true");
  };
  // Back from the next page, perhaps out of the browser's memory: it may be sent again.
  const onShow = () => {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("[aria-disabled]")) {
      button.removeAttribute("aria-disabled");
      if (words !== null) button.textContent = words;
    }
  };
  form.addEventListener("submit", onSubmit);
  window.addEventListener("pageshow", onShow);
  return () => {
    form.removeEventListener("submit", onSubmit);
    window.removeEventListener("pageshow", onShow);
  };
}
