// @ts-check
/** A form of filters: empty fields stay out of the address, so that it can be read and shared. */

/** @param {HTMLElement} el */
export function mount(el) {
  const form = /** @type {HTMLFormElement} */ (el);
  /** @param {FormDataEvent} event */
  const onFormData = (event) => {
    for (const [name, value] of [...event.formData.entries()]) if (value === "") event.formData.delete(name);
  };
  form.addEventListener("formdata", onFormData);
  return () => form.removeEventListener("formdata", onFormData);
}
