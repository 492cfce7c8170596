"""Reading pages as assistive technology does: names, headings, landmarks, references; and what the CSP would refuse."""

from html.parser import HTMLParser

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
SVG_SELF_CLOSED = {"path", "circle", "rect", "use", "line"}
NAMED = {"a", "button", "input", "select", "textarea", "dialog", "nav"}
REFERENCES = ("for", "aria-labelledby", "aria-describedby", "aria-controls", "popovertarget", "data-dialog", "list")


class Element:
    """One element with its text and where it stands."""

    def __init__(self, tag, attributes, parents):
        self.tag, self.attributes, self.parents, self.text = tag, dict(attributes), parents, ""

    def get(self, name):
        return self.attributes.get(name)

    def __repr__(self):
        return f"<{self.tag} {self.attributes}>"


class Page(HTMLParser):
    """A parsed page. `faults` tells what is wrong with it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.stack, self.unbalanced = [], [], []
        self.feed(text)
        self.close()
        self.unbalanced += [element.tag for element in self.stack]

    def handle_starttag(self, tag, attrs):
        element = Element(tag, attrs, list(self.stack))
        self.elements.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(Element(tag, attrs, list(self.stack)))

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.stack or self.stack[-1].tag != tag:
            self.unbalanced.append(f"</{tag}> closes {self.stack[-1].tag if self.stack else 'nothing'}")
            return
        self.stack.pop()

    def handle_data(self, data):
        if any(element.get("aria-hidden") == "true" for element in self.stack):
            return
        for element in self.stack:
            element.text += data

    def all(self, *tags):
        return [element for element in self.elements if element.tag in tags]

    def has_name(self, element):
        if element.get("aria-label") or element.get("aria-labelledby") or element.text.strip():
            return True
        if element.tag in {"input", "select", "textarea"}:
            labels = {label.get("for") for label in self.all("label")}
            return element.get("id") in labels or any(parent.tag == "label" for parent in element.parents)
        return False

    def faults(self):
        """Return sentences; an empty list means that the basics hold."""
        return [*self._structure(), *self._names(), *self._references(), *self._policy(), *self._tables()]

    def _structure(self):
        yield from (f"unbalanced: {tag}" for tag in self.unbalanced)
        if len(self.all("main")) != 1:
            yield "not exactly one main"
        outside_dialogs = [h for h in self.all("h1") if not any(p.tag == "dialog" for p in h.parents)]
        if len(outside_dialogs) != 1:
            yield f"{len(outside_dialogs)} h1"
        level = 0
        for heading in self.all("h1", "h2", "h3", "h4"):
            if any(parent.tag == "dialog" for parent in heading.parents):
                continue
            if int(heading.tag[1]) > level + 1:
                yield f"heading skips a level: {heading.tag} {heading.text!r}"
            level = int(heading.tag[1])
        html = self.all("html")[0]
        if not html.get("lang"):
            yield "html without lang"
        if not self.all("title")[0].text.strip(" ·"):
            yield "no title"

    def _names(self):
        for element in self.elements:
            if element.tag not in NAMED or element.get("type") == "hidden" or element.get("hidden") is not None:
                continue
            if "hidden" in element.attributes or (element.tag == "a" and not element.get("href")):
                continue
            if not self.has_name(element):
                yield f"no accessible name: {element}"
        for svg in self.all("svg"):
            if svg.get("aria-hidden") != "true" and not svg.get("aria-label"):
                yield f"svg without a name or aria-hidden: {svg}"

    def _references(self):
        ids = [element.get("id") for element in self.elements if element.get("id")]
        yield from (f"id twice: {name}" for name in {name for name in ids if ids.count(name) > 1})
        for element in self.elements:
            for attribute in REFERENCES:
                for target in (element.get(attribute) or "").split():
                    if target not in ids:
                        yield f"{attribute}={target} points nowhere: {element}"
            href = element.get("href") or ""
            if element.tag == "use" and href.removeprefix("#") not in ids:
                yield f"no symbol {href}"

    def _policy(self):
        for element in self.elements:
            yield from (
                f"inline {name}: {element}" for name in element.attributes if name == "style" or name.startswith("on")
            )
            is_data = element.get("type") == "application/json"  # read by scripts, never run
            if element.tag == "style" or (element.tag == "script" and not element.get("src") and not is_data):
                yield f"inline {element.tag}"
            for name in ("src", "href"):
                value = element.get(name) or ""
                if element.tag != "a" and value.startswith(("http:", "https:", "//")):
                    yield f"foreign host: {element}"

    def _tables(self):
        tables, captions = self.all("table"), self.all("caption")
        if len(captions) < len(tables):
            yield "table without a caption"
        yield from (f"th without scope: {cell}" for cell in self.all("th") if not cell.get("scope"))
