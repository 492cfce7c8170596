// @ts-check
/**
 * Binds behaviours to elements: each name in `data-module` is mounted when its element appears (page load or htmx swap) and
 * unmounted when htmx takes the element away.
 */
import { registry } from "./registry.js";
import { start as startShortcuts } from "./shortcuts.js";
import { start as startTimes } from "./times.js";
import { toast } from "./toast.js";

/** @type {Map<HTMLElement, Array<() => void>>} */
const mounted = new Map();

/**
 * Mount every behaviour at and below a node.
 * @param {Element | Document} root
 */
export function mountAll(root) {
  const elements = [...root.querySelectorAll("[data-module]")];
  if (root instanceof Element && root.matches("[data-module]")) elements.unshift(root);
  for (const element of elements) mountOne(/** @type {HTMLElement} */ (element));
}

/** @param {HTMLElement} element */
async function mountOne(element) {
  if (mounted.has(element)) return;
  /** @type {Array<() => void>} */
  const unmounts = [];
  mounted.set(element, unmounts);
  for (const name of (element.dataset.module ?? "").split(/\s+/).filter(Boolean)) {
    const load = registry[name];
    if (!load) throw new Error(`no module "${name}" in registry.js`);
    const behaviour = await load();
    if (!mounted.has(element)) return; // taken away while its module was loading
    const unmount = behaviour.mount(element);
    if (unmount) unmounts.push(unmount);
  }
}

/**
 * Unmount every behaviour at and below a node.
 * @param {Element} root
 */
export function unmountAll(root) {
  for (const [element, unmounts] of mounted) {
    if (element !== root && !root.contains(element)) continue;
    mounted.delete(element);
    for (const unmount of unmounts) unmount();
  }
}

document.addEventListener("htmx:load", (event) => mountAll(/** @type {CustomEvent} */ (event).detail.elt));
document.addEventListener("htmx:beforeCleanupElement", (event) => {
  const { elt } = /** @type {CustomEvent} */ (event).detail;
  if (mounted.has(elt)) unmountAll(elt);
});
// A request that the browser drops because the page goes away is no failure to tell of.
let isLeaving = false;
window.addEventListener("beforeunload", () => { isLeaving = true; });
window.addEventListener("pageshow", () => { isLeaving = false; });
for (const name of ["htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(name, () => !isLeaving && toast({ text: gettext("The panel does not answer. Check the connection."), tone: "critical", once: "net" }));
}
document.addEventListener("htmx:responseError", (event) => {
  const { xhr } = /** @type {CustomEvent} */ (event).detail;
  if (xhr.getResponseHeader("HX-Trigger")) return; // it brings its own sentence
  toast({ text: interpolate(gettext("The panel refused this (%s)."), [xhr.status]), tone: "critical", once: "refused" });
});

document.addEventListener("click", (event) => {
  const opener = /** @type {Element} */ (event.target).closest?.("[data-dialog]");
  if (!(opener instanceof HTMLElement)) return;
  const dialog = document.getElementById(opener.dataset.dialog ?? "");
  if (!(dialog instanceof HTMLDialogElement)) return;
  event.preventDefault();
  /** @type {HTMLElement | null} */ (opener.closest("[popover]"))?.hidePopover();
  dialog.showModal();
});

mountAll(document);
startTimes();
startShortcuts();
