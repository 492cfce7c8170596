"""What monitoring adds to the API: series, and the GPUs with their latest values."""

from rest_framework.routers import BaseRouter


def register(router: BaseRouter) -> None:
    """Add GPUs and probes; series hang below servers and GPUs by paths of their own (urls.py)."""
    from monitoring.api.alert_rules import AlertRuleViewSet
    from monitoring.api.alerts import AlertViewSet
    from monitoring.api.channels import ChannelViewSet
    from monitoring.api.diagnoses import DiagnosisViewSet
    from monitoring.api.golive import GoLiveViewSet
    from monitoring.api.gpus import GpuViewSet
    from monitoring.api.notifications import NotificationViewSet
    from monitoring.api.probes import ProbeViewSet
    from monitoring.api.silences import SilenceViewSet

    router.register("alerts", AlertViewSet, basename="alert")
    router.register("alert-rules", AlertRuleViewSet, basename="alert-rule")
    router.register("silences", SilenceViewSet, basename="silence")
    router.register("channels", ChannelViewSet, basename="channel")
    router.register("notifications", NotificationViewSet, basename="notification")
    router.register("gpus", GpuViewSet, basename="gpu")
    router.register("probes", ProbeViewSet, basename="probe")
    router.register("diagnoses", DiagnosisViewSet, basename="diagnosis")
    router.register("golive-tests", GoLiveViewSet, basename="golive")
