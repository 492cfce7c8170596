// @ts-check
/** The second step of a log-in with a passkey: asks the authenticator at a press of the button, and sends its answer. */
import { get, isPossible, words } from "../webauthn.js";

/** @param {HTMLElement} el */
export function mount(el) {
  const form = /** @type {HTMLFormElement} */ (el);
  const button = /** @type {HTMLButtonElement | null} */ (form.querySelector("button[type=submit]"));
  const field = /** @type {HTMLInputElement | null} */ (form.querySelector("[name=passkey]"));
  const problem = /** @type {HTMLElement | null} */ (form.querySelector("[data-passkey-error]"));
  if (!button || !field || !problem) return undefined;
  /** @param {string} text */
  const say = (text) => {
    problem.textContent = text;
    problem.hidden = !text;
  };
  if (!isPossible()) say(gettext("This browser offers no passkeys here."));
  button.disabled = !isPossible();
  /** @param {SubmitEvent} event */
  const onSubmit = async (event) => {
    if (field.value) return; // filled below: this time it goes to the panel
    event.preventDefault();
    button.disabled = true;
    say("");
    try {
      field.value = JSON.stringify(await get(JSON.parse(form.dataset.options ?? "{}")));
      form.submit();
    } catch (error) {
      say(words(error));
      button.disabled = false;
    }
  };
  form.addEventListener("submit", onSubmit);
  return () => form.removeEventListener("submit", onSubmit);
}
