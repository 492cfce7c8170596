"""The API's description of itself: the OpenAPI file, and pages that read it.

Both are open to strangers: they are the same for every installation and tell nothing about this one.
"""

from typing import Any

from django.http import HttpResponse
from django.utils.translation import get_language
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request

# Describing takes a second of work, and the code does not change while a process runs: (language, media type) → body.
_rendered: dict[tuple[str, str], bytes] = {}


class SchemaView(SpectacularAPIView):
    """OpenAPI 3, as YAML or as JSON."""

    @extend_schema(exclude=True)
    def get(self, request: Request, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Return the description; each process makes it once for each language and format."""
        renderer = request.accepted_renderer
        key = (get_language() or "", renderer.media_type)
        if key not in _rendered:
            schema = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
            body: str | bytes = renderer.render(schema, renderer.media_type, self.get_renderer_context())
            _rendered[key] = body.encode() if isinstance(body, str) else body
        return HttpResponse(_rendered[key], content_type=f"{renderer.media_type}; charset=utf-8")


class DocsView(SpectacularSwaggerSplitView):
    """Pages to read and try the API. Its script has an address of its own, because the CSP allows no inline one."""

    url_name = "api-schema"
    template_name = "accounts/api_docs.html"
