// @ts-check
/** The copy button of components/code.html. Without the clipboard (plain HTTP) it selects the text instead. */

/** @param {HTMLElement} el */
export function mount(el) {
  const button = el.querySelector("[data-copy]");
  const source = el.querySelector("[data-copy-text]");
  const word = el.querySelector("[data-copy-word]");
  if (!button || !source || !word) return undefined;
  const before = word.textContent;
  let timer = 0;
  const onClick = async () => {
    const copied = await copy(source);
    word.textContent = copied ? gettext("Copied") : gettext("Press Ctrl C");
    window.clearTimeout(timer);
    timer = window.setTimeout(() => { word.textContent = before; }, 2000);
  };
  word.setAttribute("aria-live", "polite");
  button.addEventListener("click", onClick);
  return () => {
    window.clearTimeout(timer);
    button.removeEventListener("click", onClick);
  };
}

/** @param {Element} source */
async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.textContent ?? "");
    return true;
  } catch {
    const selection = window.getSelection();
    selection?.selectAllChildren(source);
    try {
      return document.execCommand("copy"); // the only way on a page that is not served over TLS
    } catch {
      return false;
    }
  }
}
