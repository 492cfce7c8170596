// @ts-check
/** The form that adds a passkey: the password to the panel, its options to the authenticator, the answer to the panel. */
import { create, isPossible, words } from "../webauthn.js";

/** @param {HTMLElement} el */
export function mount(el) {
  const form = /** @type {HTMLFormElement} */ (el);
  const button = /** @type {HTMLButtonElement | null} */ (form.querySelector("button[type=submit]"));
  const problem = /** @type {HTMLElement | null} */ (form.querySelector("[data-passkey-error]"));
  if (!button || !problem) return undefined;
  /** @param {string} text */
  const say = (text) => {
    problem.textContent = text;
    problem.hidden = !text;
  };
  if (!isPossible()) say(gettext("This browser offers no passkeys here."));
  button.disabled = !isPossible();
  /** @param {SubmitEvent} event */
  const onSubmit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    say("");
    const typed = new FormData(form);
    try {
      const { options } = await post(form.dataset.start ?? "", { password: typed.get("password") });
      await post(form.dataset.finish ?? "", { name: typed.get("name"), credential: await create(options) });
      window.location.reload();
    } catch (error) {
      say(words(error));
      button.disabled = false;
    }
  };
  form.addEventListener("submit", onSubmit);
  return () => form.removeEventListener("submit", onSubmit);
}

/**
 * @param {string} address
 * @param {object} body
 */
async function post(address, body) {
  const { "X-CSRFToken": token } = JSON.parse(document.body.getAttribute("hx-headers") ?? "{}");
  const response = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRFToken": token },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.errors?.[0]?.detail ?? gettext("The panel refused this."));
  return answer;
}
