"""Addresses that agents use for what they found by probing, and for the load of go-live tests."""

from django.urls import path

from fleet.agent import orders
from fleet.agent.load.order import LOAD_PATH
from monitoring import views

urlpatterns = [
    path(orders.PROBES_PATH.lstrip("/"), views.probes, name="agent-probes"),
    path(f"{LOAD_PATH.lstrip('/')}<int:part_id>/", views.load, name="agent-load"),
]
