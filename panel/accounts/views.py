"""Where one logs in and out. The pages' looks are the frontend's; what happens is the accounts' services'."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from panel.accounts.audit import Actor
from panel.accounts.models import User
from panel.accounts.services.login import credentials_check, session_log_in, session_log_out
from panel.core.errors import ExternalError, FleetdeckError, NotAuthenticated, RateLimited

TEMPLATE = "accounts/login.html"


class LogInForm(forms.Form):
    """A name and a password."""

    username = forms.CharField(
        label=_("Name"), max_length=150, widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True})
    )
    password = forms.CharField(
        label=_("Password"),
        max_length=1024,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


def next_page(request: HttpRequest) -> str:
    """Return where the form asks to go on, when that is an address of this panel; else the overview."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_ours else resolve_url(settings.LOGIN_REDIRECT_URL)


@method_decorator([login_not_required, never_cache, sensitive_post_parameters("password")], name="dispatch")
class LogInView(View):
    """The log-in page."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show the form, or go on when somebody is logged in already."""
        if isinstance(request.user, User):
            return HttpResponseRedirect(next_page(request))
        return self._page(request, LogInForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        """Log in and go on; otherwise show the form again with the reason."""
        form = LogInForm(request.POST)
        if not form.is_valid():
            return self._page(request, form, status=400)
        try:
            user = credentials_check(actor=Actor.from_request(request), **form.cleaned_data)
        except (NotAuthenticated, RateLimited, ExternalError) as error:
            return self._refused(request, form, error)
        session_log_in(request=request, user=user)
        return HttpResponseRedirect(next_page(request))

    def _refused(self, request: HttpRequest, form: LogInForm, error: FleetdeckError) -> HttpResponse:
        form.add_error(None, error.message)
        response = self._page(request, form, status=error.status)
        if isinstance(error, RateLimited):
            response["Retry-After"] = str(max(1, round(error.retry_after_seconds)))
        return response

    @staticmethod
    def _page(request: HttpRequest, form: LogInForm, *, status: int = 200) -> HttpResponse:
        context: dict[str, Any] = {"form": form, "next": next_page(request)}
        return render(request, TEMPLATE, context, status=status)


@require_POST
@login_not_required
def log_out(request: HttpRequest) -> HttpResponse:
    """End the session and show the log-in page."""
    session_log_out(request=request)
    return HttpResponseRedirect(resolve_url(settings.LOGIN_URL))
