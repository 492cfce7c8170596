// @ts-check
/** The table twin of a chart: the same data at the shown resolution, newest first, 25 rows a page. */
import { formatMoment } from "./format.js";
import { valueAt } from "./tooltip.js";

export const PAGE_ROWS = 25;

/**
 * The points of one page, newest first; those at which no line has a reading of its own are left out.
 * @param {import("./model.js").ChartModel} model
 * @param {number} page 0 is the newest
 * @returns {{indexes: number[], pages: number}}
 */
export function pageOf(model, page) {
  const indexes = model.readingPlaces();
  const pages = Math.max(1, Math.ceil(indexes.length / PAGE_ROWS));
  const start = Math.min(Math.max(page, 0), pages - 1) * PAGE_ROWS;
  return { indexes: indexes.slice(start, start + PAGE_ROWS), pages };
}

export class TableTwin {
  /** @param {import("./chart.js").Chart} chart */
  constructor(chart) {
    this.chart = chart;
    this.page = 0;
    /** @type {HTMLElement | null} */
    this.element = null;
    this.link = /** @type {HTMLAnchorElement | null} */ (chart.figure.querySelector("[data-table]"));
    this.csvHref = this.link?.dataset.csv ?? "";
  }

  get isOpen() {
    return this.element !== null;
  }

  toggle() {
    if (this.isOpen) this.close();
    else this.open();
    this.link?.setAttribute("aria-expanded", String(this.isOpen));
    this.chart.figure.toggleAttribute("data-as-table", this.isOpen);
  }

  open() {
    this.page = 0;
    this.element = document.createElement("div");
    this.element.className = "chart-table";
    this.chart.mountPoint.after(this.element);
    this.render();
  }

  close() {
    this.element?.remove();
    this.element = null;
    this.chart.draw(true);
  }

  render() {
    if (this.element === null) return;
    const { indexes, pages } = pageOf(this.chart.model, this.page);
    const scroller = document.createElement("div");
    scroller.className = "table-wrap";
    scroller.tabIndex = 0;
    scroller.setAttribute("role", "region");
    scroller.setAttribute("aria-label", this.chart.choice.label);
    scroller.append(this.table(indexes));
    this.element.replaceChildren(scroller, this.footer(pages));
  }

  /** @param {number[]} indexes */
  table(indexes) {
    const { chart } = this;
    const table = document.createElement("table");
    table.className = "table compact";
    const caption = table.createCaption();
    caption.className = "visually-hidden";
    caption.textContent = chart.choice.label;
    const head = table.createTHead().insertRow();
    head.append(header(gettext("Time")), ...chart.choice.lines.map((line) => header(line.label, "num")));
    const body = table.createTBody();
    for (const index of indexes) {
      const row = body.insertRow();
      const time = row.insertCell();
      time.className = "nowrap";
      time.textContent = formatMoment(chart.model.x[index] * 1000, chart.host.zone);
      for (const line of chart.choice.lines) {
        const cell = row.insertCell();
        cell.className = "num nowrap";
        cell.textContent = valueAt(chart, line, index);
      }
    }
    return table;
  }

  /** @param {number} pages */
  footer(pages) {
    const foot = document.createElement("div");
    foot.className = "chart-table-foot";
    const word = document.createElement("span");
    word.textContent = interpolate(gettext("Page %(page)s of %(pages)s"), { page: this.page + 1, pages }, true);
    const newer = this.button(gettext("Newer"), this.page > 0, -1);
    const older = this.button(gettext("Older"), this.page < pages - 1, 1);
    const csv = document.createElement("a");
    csv.className = "btn btn-s";
    csv.href = this.csvHref;
    csv.textContent = "CSV";
    foot.append(newer, older, word, csv);
    return foot;
  }

  /** @param {string} text @param {boolean} isEnabled @param {number} move */
  button(text, isEnabled, move) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn-s";
    button.textContent = text;
    button.disabled = !isEnabled;
    button.addEventListener("click", () => {
      this.page += move;
      this.render();
    });
    return button;
  }
}

/** @param {string} text @param {string} [className] */
function header(text, className = "") {
  const cell = document.createElement("th");
  cell.scope = "col";
  cell.className = className;
  cell.textContent = text;
  return cell;
}
