"""Addresses of the pages. Names without a namespace: `overview`, `fleet`, `server`, `gpu`, `join`, `events`, `settings`, …"""

from django.urls import URLPattern, URLResolver, include, path

from frontend.views import (
    acceptance,
    catalog,
    charts,
    events,
    fleet,
    gpu,
    join,
    live,
    overview,
    preferences,
    search,
    self_health,
    server,
)
from frontend.views.leasing import accounts, drift, lease, leases, offers, operations
from frontend.views.settings import installation, passkeys, profile, second_factor, sessions, tokens, users

settings_urls: list[URLPattern | URLResolver] = [
    path("", profile.profile, name="settings"),
    path("password/", profile.password, name="settings-password"),
    path("second-factor/", second_factor.second_factor, name="settings-second-factor"),
    path("second-factor/start/", second_factor.start, name="settings-second-factor-start"),
    path("second-factor/confirm/", second_factor.confirm, name="settings-second-factor-confirm"),
    path("second-factor/disable/", second_factor.disable, name="settings-second-factor-disable"),
    path("passkeys/<int:passkey_id>/", passkeys.passkey, name="settings-passkey"),
    path("passkeys/<int:passkey_id>/rename/", passkeys.rename, name="settings-passkey-rename"),
    path("passkeys/<int:passkey_id>/remove/", passkeys.remove, name="settings-passkey-remove"),
    path("users/", users.users, name="settings-users"),
    path("users/new/", users.user_new, name="settings-user-new"),
    path("users/<int:user_id>/", users.user, name="settings-user"),
    path("users/<int:user_id>/password/", users.user_password, name="settings-user-password"),
    path("users/<int:user_id>/active/", users.user_active, name="settings-user-active"),
    path("users/<int:user_id>/second-factor/", users.user_second_factor, name="settings-user-second-factor"),
    path("users/<int:user_id>/remove/", users.user_remove, name="settings-user-remove"),
    path("tokens/", tokens.tokens, name="settings-tokens"),
    path("tokens/new/", tokens.token_new, name="settings-token-new"),
    path("tokens/<int:token_id>/revoke/", tokens.revoke, name="settings-token-revoke"),
    path("sessions/", sessions.sessions, name="settings-sessions"),
    path("sessions/<int:session_id>/end/", sessions.end, name="settings-session-end"),
    path("sessions/end/", sessions.end_all, name="settings-sessions-end"),
    path("installation/", installation.installation, name="settings-installation"),
]

CHART_URLS: list[URLPattern | URLResolver] = [
    path(address.format(kind=kind), view, {"kind": kind}, name=f"{kind}-{name}")
    for kind in ("server", "gpu")
    for address, view, name in (
        ("{kind}s/<int:subject_id>/charts/<slug:chart_id>/", charts.table, "chart"),
        ("{kind}s/<int:subject_id>/charts/<slug:chart_id>/csv/", charts.csv, "chart-csv"),
        ("{kind}s/<int:subject_id>/summaries/", charts.summaries, "summaries"),
    )
]

RENTAL_URLS: list[URLPattern | URLResolver] = [
    path("providers/", accounts.accounts, name="providers"),
    path("providers/new/", accounts.account_new, name="provider-new"),
    path("providers/<int:account_id>/", accounts.account, name="provider"),
    path("providers/<int:account_id>/edit/", accounts.edit, name="provider-edit"),
    path("providers/<int:account_id>/key/", accounts.key, name="provider-key"),
    path("providers/<int:account_id>/pause/", accounts.pause, name="provider-pause"),
    path("providers/<int:account_id>/sync/", accounts.sync, name="provider-sync"),
    path("providers/<int:account_id>/adopt/", accounts.adopt, name="provider-adopt"),
    path("providers/<int:account_id>/remove/", accounts.remove, name="provider-remove"),
    path("offers/", offers.offers, name="offers"),
    path("offers/compare/", offers.compare, name="offers-compare"),
    path("offers/<int:offer_id>/order/", offers.order, name="order"),
    path("servers/<int:server_id>/order-again/", offers.again, name="order-again"),
    path("operations/", operations.operations, name="operations"),
    path("operations/<int:operation_id>/", operations.operation, name="operation"),
    path("leases/", leases.leases, name="leases"),
    path("leases/csv/", leases.export, name="leases-csv"),
    path("leases/bulk/", leases.bulk, name="leases-bulk"),
    path("leases/new/", lease.contract_new, name="contract-new"),
    path("leases/<int:lease_id>/", lease.lease, name="lease"),
    path("leases/<int:lease_id>/terms/", lease.terms, name="lease-terms"),
    path("leases/<int:lease_id>/close/", lease.close, name="contract-close"),
    path("leases/<int:lease_id>/attach/", lease.attach, name="lease-tie"),
    path("leases/<int:lease_id>/<slug:name>/", lease.act, name="lease-act"),
    path("drift/", drift.drift, name="drift"),
    path("drift/<int:drift_id>/adopt/", drift.adopt, name="difference-adopt"),
    path("drift/<int:drift_id>/end/", drift.end, name="difference-end"),
    path("drift/<int:drift_id>/accept/", drift.accept, name="difference-accept"),
    path("drift/<int:drift_id>/ignore/", drift.ignore, name="difference-ignore"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", overview.overview, name="overview"),
    path("fleet/", fleet.fleet, name="fleet"),
    path("fleet/rows/", fleet.rows, name="fleet-rows"),
    path("fleet/columns/", fleet.columns, name="fleet-columns"),
    path("fleet/csv/", fleet.export, name="fleet-csv"),
    path("fleet/sparklines/", fleet.sparks, name="fleet-sparklines"),
    path("servers/<int:server_id>/", server.server, name="server"),
    path("servers/<int:server_id>/acceptance/", acceptance.acceptance, name="acceptance"),
    path("servers/<int:server_id>/acceptance/begin/", acceptance.acceptance_begin, name="acceptance-begin"),
    path("servers/<int:server_id>/acceptance/<int:job_id>/", acceptance.acceptance_one, name="acceptance-one"),
    path(
        "servers/<int:server_id>/acceptance/<int:job_id>/progress/",
        acceptance.acceptance_progress,
        name="acceptance-progress",
    ),
    path(
        "servers/<int:server_id>/acceptance/<int:job_id>/cancel/",
        acceptance.acceptance_cancel,
        name="acceptance-cancel",
    ),
    path("servers/<int:server_id>/join/", join.server_join, name="server-join"),
    path("servers/<int:server_id>/rename/", server.rename, name="server-rename"),
    path("servers/<int:server_id>/maintenance/", server.maintenance, name="server-maintenance"),
    path("servers/<int:server_id>/remove/", server.remove, name="server-remove"),
    path("gpus/<int:gpu_id>/", gpu.gpu, name="gpu"),
    *CHART_URLS,
    *RENTAL_URLS,
    path("live/snapshots/", live.snapshots, name="live-snapshots"),
    path("jsi18n/", catalog.javascript_catalog, name="jsi18n"),
    path("preferences/", preferences.preferences, name="preferences"),
    path("search/", search.search, name="search"),
    path("events/", events.events, name="events"),
    path("events/new/", events.events_new, name="events-new"),
    path("events/csv/", events.events_csv, name="events-csv"),
    path("join/", join.join, name="join"),
    path("join/<int:token_id>/", join.join_one, name="join-one"),
    path("join/<int:token_id>/steps/", join.join_steps, name="join-steps"),
    path("join/<int:token_id>/revoke/", join.join_revoke, name="join-revoke"),
    path("self-health/", self_health.self_health, name="self-health"),
    path("settings/", include(settings_urls)),
]
