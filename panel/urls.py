"""Every address of the panel that Django answers."""

from django.urls import URLPattern, URLResolver, include, path

from panel.accounts.api.documentation import DocsView, SchemaView
from panel.accounts.views import LogInView, log_out
from panel.health.metrics import MetricsView

urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", LogInView.as_view(), name="login"),
    path("logout/", log_out, name="logout"),
    path("metrics", MetricsView.as_view(), name="metrics"),
    path("", include("fleet.urls")),
    path("", include("monitoring.urls")),
    path("", include("endpoints.urls")),
    path("api/v1/", include("panel.api")),
    path("api/schema/", SchemaView.as_view(), name="api-schema"),
    path("api/docs/", DocsView.as_view(), name="api-docs"),
    path("", include("frontend.urls")),
]

handler400 = "frontend.views.errors.bad_request"
handler403 = "frontend.views.errors.permission_denied"
handler404 = "frontend.views.errors.not_found"
handler500 = "frontend.views.errors.server_error"
