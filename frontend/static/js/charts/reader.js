// @ts-check
/**
 * Reading values off the charts of a board: tooltip, keyboard and table. Each is loaded with the first hover, focus or press
 * that needs it, so that a page that is only looked at does not pay for them.
 */

export class Reader {
  /** @param {string} zone */
  constructor(zone) {
    this.zone = zone;
    /** @type {import("./tooltip.js").Tooltip | null} */
    this.tooltip = null;
    /** @type {Map<import("./chart.js").Chart, import("./table.js").TableTwin>} */
    this.tables = new Map();
    /** @type {(() => void)[]} */
    this.endings = [];
  }

  /** @param {import("./chart.js").Chart} chart */
  attach(chart) {
    const link = chart.figure.querySelector("[data-table]");
    link?.setAttribute("role", "button");
    link?.setAttribute("aria-expanded", "false");
    this.listen(link, "click", (event) => {
      event.preventDefault();
      this.toggleTable(chart);
    });
    this.listen(chart.mountPoint, "pointerenter", () => this.loadTooltip());
    this.listen(chart.mountPoint, "focus", () => this.loadKeyboard(chart), true);
  }

  /** @param {Element | null} target @param {string} name @param {(event: Event) => void} heard @param {boolean} [once] */
  listen(target, name, heard, once = false) {
    target?.addEventListener(name, heard, { once });
    this.endings.push(() => target?.removeEventListener(name, heard));
  }

  async loadTooltip() {
    const { Tooltip } = await import("./tooltip.js");
    this.tooltip ??= new Tooltip(this.zone);
    return this.tooltip;
  }

  /** @param {import("./chart.js").Chart} chart */
  async loadKeyboard(chart) {
    const [{ readByKeyboard }] = await Promise.all([import("./keyboard.js"), this.loadTooltip()]);
    this.endings.push(readByKeyboard(chart, (one, index) => this.show(one, index), () => this.toggleTable(chart)));
  }

  /** @param {import("./chart.js").Chart} chart */
  async toggleTable(chart) {
    const { TableTwin } = await import("./table.js");
    const table = this.tables.get(chart) ?? new TableTwin(chart);
    this.tables.set(chart, table);
    table.toggle();
  }

  /** @param {import("./chart.js").Chart} chart */
  isTable(chart) {
    return this.tables.get(chart)?.isOpen === true;
  }

  /** @param {import("./chart.js").Chart} chart @param {number | null} index */
  show(chart, index) {
    this.tooltip?.show(chart, index);
  }

  hide() {
    this.tooltip?.hide();
  }

  destroy() {
    for (const end of this.endings) end();
    for (const table of this.tables.values()) if (table.isOpen) table.toggle();
  }
}
