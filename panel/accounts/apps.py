"""App configuration of panel.accounts."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Users, roles, tokens, audit."""

    name = "panel.accounts"
    label = "accounts"
