"""Translations are compiled without gettext's programs."""

import gettext
import os

from panel.up.messages import compile_all

PO = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=1; plural=0;\\n"

msgid "Events"
msgstr "事件"

msgctxt "verb"
msgid "Order"
msgstr "订购"

msgid "%(count)s server"
msgid_plural "%(count)s servers"
msgstr[0] "%(count)s 台服务器"

#, fuzzy
msgid "Almost"
msgstr "差不多"
"""


def write(tmp_path, text):
    folder = tmp_path / "zh_Hans" / "LC_MESSAGES"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "django.po").write_text(text)
    return folder


def test_what_is_compiled_is_what_gettext_reads(tmp_path):
    folder = write(tmp_path, PO)
    assert compile_all(tmp_path) == 1
    with (folder / "django.mo").open("rb") as file:
        catalogue = gettext.GNUTranslations(file)
    assert catalogue.gettext("Events") == "事件"
    assert catalogue.pgettext("verb", "Order") == "订购"
    assert catalogue.ngettext("%(count)s server", "%(count)s servers", 5) == "%(count)s 台服务器"
    assert catalogue.gettext("Almost") == "Almost"


def test_only_what_changed_is_compiled_again(tmp_path):
    folder = write(tmp_path, PO)
    compile_all(tmp_path)
    assert compile_all(tmp_path) == 0
    later = (folder / "django.mo").stat().st_mtime + 10
    write(tmp_path, PO.replace("事件", "事"))
    os.utime(folder / "django.po", (later, later))
    assert compile_all(tmp_path) == 1
