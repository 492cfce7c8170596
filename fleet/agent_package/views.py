"""What a joining machine fetches. Open to strangers: there is no secret in it."""

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from fleet.agent_package.installer import installer, panel_url, wheel
from fleet.agent_package.wheel import ServedFile, agent_requirements, gateway_requirements


def _file(given: ServedFile, content_type: str) -> HttpResponse:
    response = HttpResponse(given.body, content_type=content_type)
    response["ETag"] = f'"{given.sha256}"'
    return response


@login_not_required
@require_safe
@never_cache
def install_script(request: HttpRequest) -> HttpResponse:
    """Return the installer, with the address by which the machine reached the panel."""
    return _file(installer(url=panel_url(request)), "text/x-shellscript; charset=utf-8")


@login_not_required
@require_safe
@never_cache
def requirements(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 (Django's signature)
    """Return the locked requirements of the agent."""
    return _file(agent_requirements(), "text/plain; charset=utf-8")


@login_not_required
@require_safe
@never_cache
def requirements_gateway(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 (Django's signature)
    """Return the locked requirements of an agent that is a gateway."""
    return _file(gateway_requirements(), "text/plain; charset=utf-8")


@login_not_required
@require_safe
@never_cache
def wheel_file(request: HttpRequest, name: str) -> HttpResponse:  # noqa: ARG001 (Django's signature)
    """Return the agent's wheel; another name is another version's, which this panel does not have."""
    package = wheel()
    if name != package.name:
        raise Http404
    return _file(package, "application/octet-stream")
