"""The routes of the API: every app registers its resources here, each under one name."""

from django.urls import URLPattern, URLResolver, include, path, re_path
from rest_framework.routers import SimpleRouter

from endpoints import api as endpoints_api
from fleet import api as fleet_api
from monitoring import api as monitoring_api
from monitoring.api.urls import urlpatterns as monitoring_urls
from panel.accounts import api as accounts_api
from panel.accounts.api.fallback import api_not_found
from panel.accounts.api.tokens import ObtainTokenView
from panel.health.api import HealthView

router = SimpleRouter()
accounts_api.register(router)
fleet_api.register(router)
monitoring_api.register(router)
endpoints_api.register(router)

urlpatterns: list[URLPattern | URLResolver] = [
    path("auth/token/", ObtainTokenView.as_view(), name="auth-token"),
    path("health/", HealthView.as_view(), name="api-health"),
    *monitoring_urls,
    path("", include(router.urls)),
    re_path(r"^.*$", api_not_found),
]
