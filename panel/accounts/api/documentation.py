"""The API's description of itself: the OpenAPI file, and pages that read it.

Both are open to strangers: they are the same for every installation and tell nothing about this one.
"""

from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView


class SchemaView(SpectacularAPIView):
    """OpenAPI 3, as YAML or as JSON."""


class DocsView(SpectacularSwaggerSplitView):
    """Pages to read and try the API. Its script has an address of its own, because the CSP allows no inline one."""

    url_name = "api-schema"
    template_name = "accounts/api_docs.html"
