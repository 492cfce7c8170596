"""Language and theme from the switches of the shell; also before anybody has logged in."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from frontend.preferences import known_language, known_theme, remember
from panel.accounts.audit import Actor
from panel.accounts.models import User
from panel.accounts.services.users import preferences_update


def safe_next(request: HttpRequest, default: str = "/") -> str:
    """Return where the form asks to go on, when that is an address of this panel."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_ours else default


@require_POST
@login_not_required
def preferences(request: HttpRequest) -> HttpResponse:
    """Store what the form names: in the account of who is logged in, and in cookies of this browser."""
    wanted = {
        "theme": known_theme(request.POST.get("theme", "")),
        "language": known_language(request.POST.get("language", "")),
    }
    chosen = {key: value for key, value in wanted.items() if value}
    if chosen and isinstance(request.user, User):
        preferences_update(actor=Actor.from_request(request), user=request.user, **chosen)
    is_fetch = request.headers.get("X-Requested-With") == "fetch"
    response = HttpResponse(status=204) if is_fetch else HttpResponseRedirect(safe_next(request))
    remember(response, **chosen)
    return response
