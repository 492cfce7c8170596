"""Where one logs in and out. The pages' looks are the frontend's; what happens is the accounts' services'."""

import json
import time
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from panel.accounts.audit import Actor
from panel.accounts.models import User
from panel.accounts.services.login import (
    credentials_check,
    passkey_log_in_check,
    second_factor_check,
    session_log_in,
    session_log_out,
)
from panel.accounts.services.passkeys import passkey_ask, relying_party
from panel.accounts.services.two_factor import second_factor_is_due, two_factor_is_on
from panel.core.errors import ExternalError, FleetdeckError, InvalidInput, NotAuthenticated, RateLimited

TEMPLATE: Final = "accounts/login.html"
PENDING: Final = "login_pending"  # in the session: who gave the right password and still owes a code, and until when
PENDING_SECONDS: Final = 300


class LogInForm(forms.Form):
    """A name and a password."""

    username = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    password = forms.CharField(
        label=gettext_lazy("Password"),
        max_length=1024,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class CodeForm(forms.Form):
    """A code of the second factor."""

    code = forms.CharField(
        label=gettext_lazy("Code"),
        max_length=32,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "autofocus": True}),
    )


class PasskeyForm(forms.Form):
    """What the browser's authenticator answered, as JSON; a script fills it in."""

    passkey = forms.CharField(max_length=20_000, widget=forms.HiddenInput)


def next_page(request: HttpRequest) -> str:
    """Return where the form asks to go on, when that is an address of this panel; else the overview."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_ours else resolve_url(settings.LOGIN_REDIRECT_URL)


def _pending_user(request: HttpRequest) -> User | None:
    user_id, until = request.session.get(PENDING, (None, 0.0))
    return User.objects.filter(pk=user_id, is_active=True).first() if until > time.time() else None


@method_decorator([login_not_required, never_cache, sensitive_post_parameters("password", "code")], name="dispatch")
class LogInView(View):
    """The log-in page: name and password, then the code for those who have a second factor.

    The template gets `form`, `next`, and `step` (`password` or `second`); at the second step `has_code` and
    `passkey_options`, which of the two ways this person can go.
    """

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show the form, or go on when somebody is logged in already."""
        if isinstance(request.user, User):
            return HttpResponseRedirect(next_page(request))
        request.session.pop(PENDING, None)
        return self._page(request, LogInForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        """Log in and go on; otherwise show the form again with the reason."""
        form = _form_of(request)
        if not form.is_valid():
            return self._page(request, form, status=400)
        try:
            user = (
                self._password_step(request, form) if isinstance(form, LogInForm) else self._second_step(request, form)
            )
        except (NotAuthenticated, RateLimited, ExternalError, InvalidInput) as error:
            return self._refused(request, form, error)
        if user is None:
            return self._page(request, CodeForm())
        request.session.pop(PENDING, None)
        session_log_in(request=request, user=user)
        return HttpResponseRedirect(next_page(request))

    def _password_step(self, request: HttpRequest, form: forms.Form) -> User | None:
        """Return who may come in; None when the password was right and a second factor is due."""
        user = credentials_check(actor=Actor.from_request(request), **form.cleaned_data)
        if not second_factor_is_due(user):
            return user
        request.session[PENDING] = (user.pk, time.time() + PENDING_SECONDS)
        request.session.cycle_key()
        return None

    def _second_step(self, request: HttpRequest, form: forms.Form) -> User:
        user = _pending_user(request)
        if user is None:
            raise NotAuthenticated(_("That took too long. Start again with name and password."), code="login_expired")
        if isinstance(form, PasskeyForm):
            passkey_log_in_check(request=request, user=user, credential=form.cleaned_data["passkey"])
        else:
            second_factor_check(actor=Actor.from_request(request), user=user, code=form.cleaned_data["code"])
        return user

    def _refused(self, request: HttpRequest, form: forms.Form, error: FleetdeckError) -> HttpResponse:
        if error.code == "login_expired":
            form = LogInForm({})
            form.errors.clear()
        form.add_error(None, error.message)
        response = self._page(request, form, status=error.status)
        if isinstance(error, RateLimited):
            response["Retry-After"] = str(max(1, round(error.retry_after_seconds)))
        return response

    @staticmethod
    def _page(request: HttpRequest, form: forms.Form, *, status: int = 200) -> HttpResponse:
        user = None if isinstance(form, LogInForm) else _pending_user(request)
        if user is None and not isinstance(form, LogInForm):
            form = LogInForm()
        context: dict[str, Any] = {"form": form, "next": next_page(request), "step": "password", "visible_form": form}
        if user is not None:
            context["visible_form"] = form if isinstance(form, CodeForm) else CodeForm()
            context |= {"step": "second", "has_code": two_factor_is_on(user), "passkey_options": _ask(request, user)}
        return render(request, TEMPLATE, context, status=status)


def _form_of(request: HttpRequest) -> forms.Form:
    if "passkey" in request.POST:
        return PasskeyForm(request.POST)
    return CodeForm(request.POST) if "code" in request.POST else LogInForm(request.POST)


def _ask(request: HttpRequest, user: User) -> str:
    """Return what the browser needs to ask for a passkey, as JSON; empty when the person has none for this address."""
    try:
        party = relying_party(request)
    except InvalidInput:
        return ""
    options = passkey_ask(user=user, party=party, session_key=request.session.session_key or "")
    return json.dumps(options) if options else ""


@require_POST
@login_not_required
def log_out(request: HttpRequest) -> HttpResponse:
    """End the session and show the log-in page."""
    session_log_out(request=request)
    return HttpResponseRedirect(resolve_url(settings.LOGIN_URL))
