"""Addresses of the pages. Names without a namespace: `overview`, `fleet`, `server`, `gpu`, `join`, `events`, `settings`, …"""

from django.urls import URLPattern, URLResolver, include, path

from frontend.views import catalog, events, preferences, search, self_health
from frontend.views.settings import installation, profile, sessions, tokens, users

settings_urls: list[URLPattern | URLResolver] = [
    path("", profile.profile, name="settings"),
    path("password/", profile.password, name="settings-password"),
    path("users/", users.users, name="settings-users"),
    path("users/new/", users.user_new, name="settings-user-new"),
    path("users/<int:user_id>/", users.user, name="settings-user"),
    path("users/<int:user_id>/password/", users.user_password, name="settings-user-password"),
    path("users/<int:user_id>/active/", users.user_active, name="settings-user-active"),
    path("users/<int:user_id>/remove/", users.user_remove, name="settings-user-remove"),
    path("tokens/", tokens.tokens, name="settings-tokens"),
    path("tokens/new/", tokens.token_new, name="settings-token-new"),
    path("tokens/<int:token_id>/revoke/", tokens.revoke, name="settings-token-revoke"),
    path("sessions/", sessions.sessions, name="settings-sessions"),
    path("sessions/<int:session_id>/end/", sessions.end, name="settings-session-end"),
    path("sessions/end/", sessions.end_all, name="settings-sessions-end"),
    path("installation/", installation.installation, name="settings-installation"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("jsi18n/", catalog.javascript_catalog, name="jsi18n"),
    path("preferences/", preferences.preferences, name="preferences"),
    path("search/", search.search, name="search"),
    path("events/", events.events, name="events"),
    path("events/new/", events.events_new, name="events-new"),
    path("events/csv/", events.events_csv, name="events-csv"),
    path("self-health/", self_health.self_health, name="self-health"),
    path("settings/", include(settings_urls)),
]
