"""Addresses that agents use for what they found by probing."""

from django.urls import path

from fleet.agent import orders
from monitoring import views

urlpatterns = [path(orders.PROBES_PATH.lstrip("/"), views.probes, name="agent-probes")]
