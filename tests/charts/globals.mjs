// What Django's JavaScript catalogue gives a page: the English texts.
globalThis.gettext = (text) => text;
globalThis.ngettext = (one, many, count) => (count === 1 ? one : many);
globalThis.interpolate = (text, values, isNamed) =>
  isNamed ? text.replace(/%\((\w+)\)s/g, (_, name) => values[name]) : [...values].reduce((done, value) => done.replace("%s", value), text);
