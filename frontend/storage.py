"""Static files under names that carry a hash of their content, so that browsers keep them for ever and never a stale one."""

from collections.abc import Iterator
from typing import Any, Final

from django.contrib.staticfiles.storage import HashedFilesMixin
from whitenoise.storage import CompressedManifestStaticFilesStorage  # type: ignore[import-untyped]

from frontend.lean import LeanSource

OURS: Final = ("css/", "img/", "js/", "vendor/")


class StaticFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # WhiteNoise has no types
    """Every file is hashed. The imports of our modules follow their new names, and what every page loads is compressed.

    The files of others (the API's documentation: 19 MB) are left as they came: rewriting and compressing them would take
    minutes of a first start, for a page that few people open.
    """

    support_js_module_import_aggregation = True
    patterns = (("css/*.css", HashedFilesMixin.patterns[0][1]),)
    _js_module_import_aggregation_patterns = (
        "js/*.js",
        HashedFilesMixin._js_module_import_aggregation_patterns[1],  # type: ignore[attr-defined]  # noqa: SLF001
    )
    max_post_process_passes = 30  # one a level of imports
    manifest_strict = False

    def stored_name(self, name: str) -> str:
        """Return the name with its hash; one that was never collected is a file that is missing, not a page that fails."""
        try:
            return str(super().stored_name(name))
        except ValueError:
            return name

    def post_process(self, paths: dict[str, tuple[Any, str]], *args: Any, **options: Any) -> Iterator[Any]:
        """Hash and rewrite; our own scripts are read without their comments."""
        lean = {
            name: (LeanSource(source) if name.startswith("js/") and name.endswith(".js") else source, path)
            for name, (source, path) in paths.items()
        }
        yield from super().post_process(lean, *args, **options)

    def compress_files(self, paths: list[str]) -> Iterator[tuple[str, str]]:
        """Compress our own files, and give the names of what was written."""
        yield from super().compress_files([path for path in paths if path.startswith(OURS)])
