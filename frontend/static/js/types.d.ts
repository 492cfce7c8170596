// What other scripts of the page put into the window, for the checker.
declare function gettext(text: string): string;
declare function ngettext(singular: string, plural: string, count: number): string;
declare function pgettext(context: string, text: string): string;
declare function interpolate(format: string, values: unknown, named?: boolean): string;
declare const htmx: {
  trigger(element: Element | string, name: string, detail?: unknown): void;
  ajax(verb: string, path: string, context: unknown): Promise<void>;
  process(element: Element): void;
};
