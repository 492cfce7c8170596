"""What answers under /api/v1/ where no resource does."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt


def error_body(*, code: str, detail: str) -> dict[str, object]:
    """Return the API's error shape for places outside the REST framework."""
    return {"type": "client_error", "errors": [{"code": code, "detail": detail, "attr": None}]}


@csrf_exempt
@login_not_required
def api_not_found(request: HttpRequest) -> JsonResponse:  # noqa: ARG001 (Django's signature)
    """Answer 404 in the API's error shape."""
    return JsonResponse(error_body(code="not_found", detail=_("There is no such resource.")), status=404)
