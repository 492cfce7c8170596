"""`GET /metrics`: the panel itself and the fleet's newest values in Prometheus' text, for whoever has a token."""

from collections.abc import Iterator
from typing import ClassVar, Final

from django.http import HttpResponse
from django.utils import translation
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.views import APIView

from endpoints.prometheus import endpoint_metrics
from monitoring.exposition import Exposition
from monitoring.probing.prometheus import probe_metrics
from monitoring.prometheus import fleet_metrics
from panel.accounts.api.authentication import BearerAuthentication
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.capabilities import Capability
from panel.core.health import Check, CheckStatus, health_checks
from panel.health.requests import registry as process_registry
from panel.settings.environment import PROJECT_VERSION

END: Final = "# EOF\n"  # of OpenMetrics


class PanelCollector(Collector):
    """The checks of Self-health: a state for each, and the number behind it where there is one."""

    def collect(self) -> Iterator[Metric]:
        """Return every family; what cannot be asked is left out and stands as `unknown`."""
        with translation.override("en"):
            checks = health_checks()
        yield self._info()
        status = GaugeMetricFamily(
            "fleetdeck_check_status", "1 for how the check came out.", labels=("check", "status")
        )
        for check in checks:
            for value in CheckStatus.values:
                status.add_metric([check.code, value], float(check.status == value))
        yield status
        yield from (self._number(check) for check in checks if check.number is not None)

    def _info(self) -> Metric:
        family = GaugeMetricFamily("fleetdeck_info", "The panel's version.", labels=("version",))
        family.add_metric([PROJECT_VERSION], 1.0)
        return family

    def _number(self, check: Check) -> Metric:
        return GaugeMetricFamily(f"fleetdeck_panel_{check.code}", f"{check.name}.", value=check.number)


class AnyAnswer(BaseContentNegotiation):
    """The text is the answer, whatever is asked for: scrapers disagree about its name."""

    def select_parser(self, request, parsers):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, ARG002
        """Return the first; there is no body to read."""
        return parsers[0]

    def select_renderer(self, request, renderers, format_suffix=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, ARG002
        """Return the first; it writes errors only."""
        return renderers[0], renderers[0].media_type


class MetricsView(APIView):
    """Metrics, with a bearer token that may see the fleet."""

    authentication_classes = (BearerAuthentication,)
    content_negotiation_class = AnyAnswer
    capability: ClassVar[CapabilityTable] = Capability.HEALTH_VIEW

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Write everything out, in the format that the scraper prefers."""
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        registry = CollectorRegistry()
        for collector in (process_registry, PanelCollector()):
            registry.register(collector)
        panel, is_openmetrics = encode(registry).decode(), "openmetrics" in content_type
        write = Exposition(is_openmetrics=is_openmetrics)
        families = "".join([*fleet_metrics(write), *probe_metrics(write), *endpoint_metrics(write)])
        body = panel.removesuffix(END) + families + (END if is_openmetrics else "")
        return HttpResponse(body, content_type=content_type, headers={"Cache-Control": "no-store"})
