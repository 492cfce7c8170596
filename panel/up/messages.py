"""Compile the translations (`.po` to `.mo`) without gettext's programs, which a newcomer's machine does not have."""

from pathlib import Path
from typing import Final

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

BASE_DIR: Final = Path(__file__).resolve().parent.parent.parent
LOCALES: Final = BASE_DIR / "frontend" / "locale"


def compile_file(source: Path) -> bool:
    """Write the `.mo` beside `source` when it is missing or older; return whether it was written. Fuzzy entries stay out."""
    target = source.with_suffix(".mo")
    if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
        return False
    with source.open("rb") as file:
        catalogue = read_po(file, locale=source.parent.parent.name)
    fresh = target.with_suffix(".mo.new")
    with fresh.open("wb") as file:
        write_mo(file, catalogue)
    fresh.replace(target)
    return True


def compile_all(locales: Path = LOCALES) -> int:
    """Compile every translation that needs it and return how many were written."""
    return sum(compile_file(source) for source in sorted(locales.glob("*/LC_MESSAGES/*.po")))


if __name__ == "__main__":
    compile_all()
