// @ts-check
/** The theme switch: applied at once, stored by the server; without JavaScript the form posts and the page comes back. */
import { csrfToken } from "../dom.js";
import { toast } from "../toast.js";

/** @param {HTMLElement} el */
export function mount(el) {
  const form = /** @type {HTMLFormElement} */ (el);
  /** @param {SubmitEvent} event */
  const onSubmit = (event) => {
    const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
    if (!button) return;
    event.preventDefault();
    apply(button.value);
    form.closest("[popover]")?.matches(":popover-open") && /** @type {HTMLElement} */ (form.closest("[popover]")).hidePopover();
    store(form.action, button.value);
  };
  form.addEventListener("submit", onSubmit);
  return () => form.removeEventListener("submit", onSubmit);
}

/** For whom the dark colours hold, as components/styles.html says it. @type {Record<string, string>} */
const DARK_MEDIA = { light: "not all", dark: "screen" };
const DARK_BY_SYSTEM = "screen and (prefers-color-scheme: dark)";

/** @param {string} theme */
function apply(theme) {
  const dark = /** @type {HTMLLinkElement} */ (document.getElementById("dark-tokens"));
  dark.media = DARK_MEDIA[theme] ?? DARK_BY_SYSTEM;
  document.documentElement.dataset.theme = theme;
  for (const button of document.querySelectorAll('button[name="theme"]')) {
    button.setAttribute("aria-pressed", String(/** @type {HTMLButtonElement} */ (button).value === theme));
  }
  const icon = { light: "sun", dark: "moon" }[theme] ?? "auto";
  document.querySelector('[popovertarget="menu-theme"] use')?.setAttribute("href", `#icon-${icon}`);
  document.dispatchEvent(new CustomEvent("fleetdeck:theme", { detail: { theme } }));
}

/**
 * @param {string} action
 * @param {string} theme
 */
async function store(action, theme) {
  try {
    const body = new URLSearchParams({ theme });
    const answer = await fetch(action, { method: "POST", body, headers: { "X-CSRFToken": csrfToken(), "X-Requested-With": "fetch" } });
    if (!answer.ok) throw new Error(String(answer.status));
  } catch {
    toast({ text: gettext("The theme could not be stored; it holds for this page only."), tone: "warning", once: "theme" });
  }
}
