"""Whether the panel itself is well: `/healthz`, `/readyz`, the checks of Self-health and the panel's own metrics."""

from panel.core.health import Check, CheckStatus, health_checks, worst

__all__ = ["Check", "CheckStatus", "health_checks", "worst"]
