// @ts-check
/**
 * A long table in chunks: one `tbody[data-chunk]` each. Chunks in sight hold rows, the others a gap of the same height, so
 * that a thousand rows cost no more than a screenful.
 */

const NEAR = "800px";

export class ChunkedRows {
  /**
   * @param {HTMLElement} root the element that scrolls, with data-total, data-chunk-rows and data-rows-url
   * @param {() => void} changed called when rows came or went
   * @param {() => void} resized called when the list as a whole has more or fewer rows than before
   */
  constructor(root, changed, resized = () => {}) {
    this.root = root;
    this.changed = changed;
    this.resized = resized;
    this.table = /** @type {HTMLTableElement} */ (root.querySelector("table"));
    this.size = Number(root.dataset.chunkRows);
    this.total = Number(root.dataset.total);
    /** @type {Set<HTMLTableSectionElement>} */
    this.loading = new Set();
    this.rowHeight = this.table.tBodies[0]?.rows[0]?.offsetHeight || 36;
    this.isFromTheTop = Number(this.table.tBodies[0]?.dataset.chunk ?? 0) === 0;
    if (this.isFromTheTop && this.total > this.table.tBodies.length * this.size) this.extend();
    // The margin counts from what scrolls: the list itself, or on a phone the page.
    const scroller = root.scrollHeight > root.clientHeight + 1 ? root : null;
    this.observer = new IntersectionObserver((entries) => this.seen(entries), { root: scroller, rootMargin: NEAR });
    for (const body of this.table.tBodies) this.observer.observe(body);
  }

  /** Put gaps where further chunks belong; the links to further pages are not needed then. */
  extend() {
    this.freeze();
    for (let number = this.table.tBodies.length; number * this.size < this.total; number += 1) {
      const body = document.createElement("tbody");
      body.dataset.chunk = String(number);
      body.dataset.rows = "";
      this.table.append(body);
      this.gap(body, Math.min(this.size, this.total - number * this.size) * this.rowHeight);
      this.observer?.observe(body);
    }
    document.querySelector(".list-pages")?.remove();
  }

  /** Keep the widths of columns: other rows must not move them. Not rounded, or together they may be wider than the list. */
  freeze() {
    const cells = [...(this.table.tHead?.rows[0].cells ?? [])];
    const widths = cells.map((cell) => cell.getBoundingClientRect().width);
    for (const [number, cell] of cells.entries()) cell.style.width = `${widths[number]}px`;
    this.table.classList.add("is-fixed");
  }

  /** @param {HTMLTableSectionElement} body @param {number} height */
  gap(body, height) {
    const row = document.createElement("tr");
    const cell = row.insertCell();
    cell.colSpan = this.table.tHead?.rows[0].cells.length ?? 1;
    cell.className = "chunk-gap";
    cell.style.height = `${height}px`;
    body.replaceChildren(row);
    body.dataset.gap = "";
  }

  /** @param {IntersectionObserverEntry[]} entries */
  seen(entries) {
    for (const entry of entries) {
      const body = /** @type {HTMLTableSectionElement} */ (entry.target);
      if (entry.isIntersecting && "gap" in body.dataset) this.load(body);
      else if (!entry.isIntersecting && !("gap" in body.dataset) && this.table.tBodies.length > 3) this.release(body);
    }
  }

  /** @param {HTMLTableSectionElement} body */
  release(body) {
    if (body.contains(document.activeElement)) return;
    this.gap(body, body.offsetHeight);
    this.changed();
  }

  /** @param {HTMLTableSectionElement} body */
  async load(body) {
    if (this.loading.has(body)) return;
    this.loading.add(body);
    try {
      const query = new URLSearchParams(location.search);
      query.set("tab", this.root.dataset.tab ?? "");
      query.set("chunk", body.dataset.chunk ?? "0");
      const response = await fetch(`${this.root.dataset.rowsUrl}?${query}`);
      if (!response.ok) return;
      this.fill(body, await response.text());
      this.resize(Number(response.headers.get("Fleetdeck-Total") ?? this.total));
    } catch {
      // The gap stays; it is asked for again when it is next seen, and the page says that it is offline.
    } finally {
      this.loading.delete(body);
    }
  }

  /** @param {HTMLTableSectionElement} body @param {string} html from this panel, escaped there */
  fill(body, html) {
    const template = document.createElement("template");
    template.innerHTML = `<table>${html}</table>`;
    const fresh = template.content.querySelector("tbody");
    if (fresh === null) return;
    body.replaceChildren(...fresh.children);
    delete body.dataset.gap;
    this.changed();
  }

  /** Make room for rows that the list has now, and give up what it no longer has. @param {number} total */
  resize(total) {
    if (total === this.total || !this.isFromTheTop) return;
    this.total = total;
    if (total > this.table.tBodies.length * this.size) this.extend();
    const needed = Math.max(1, Math.ceil(total / this.size));
    for (const body of [...this.table.tBodies].slice(needed)) body.remove();
    this.resized();
  }

  /** Fetch the chunks that hold rows again. */
  renew() {
    for (const body of this.table.tBodies) if (!("gap" in body.dataset)) this.load(body);
  }

  destroy() {
    this.observer.disconnect();
  }
}
