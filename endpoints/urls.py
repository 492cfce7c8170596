"""Addresses that agents use for replicas and gateways."""

from django.urls import path

from endpoints import views
from fleet.agent import orders

urlpatterns = [
    path(orders.REPLICAS_PATH.lstrip("/"), views.replicas, name="agent-replicas"),
    path(orders.LOGS_PATH.lstrip("/"), views.replica_logs, name="agent-replica-logs"),
    path(orders.ROUTES_PATH.lstrip("/"), views.routes, name="agent-routes"),
    path(orders.TRAFFIC_PATH.lstrip("/"), views.traffic, name="agent-traffic"),
]
