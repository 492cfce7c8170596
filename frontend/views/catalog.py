"""The words of JavaScript, as an external script."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control
from django.utils.translation import override
from django.views.i18n import JavaScriptCatalog

from frontend.preferences import known_language

_catalog = JavaScriptCatalog.as_view(packages=["frontend"])


@login_not_required
def javascript_catalog(request: HttpRequest) -> HttpResponse:
    """Answer gettext and its catalogue in ?language=. Kept for a day: the address names the language and our version."""
    with override(known_language(request.GET.get("language", "")) or settings.LANGUAGE_CODE):
        response: HttpResponse = _catalog(request)  # type: ignore[assignment]  # a synchronous view
    patch_cache_control(response, private=True, max_age=86_400)
    return response
