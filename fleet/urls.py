"""Addresses that machines use, beside the report's, which is the ingest's."""

from django.urls import path

from fleet import views
from fleet.agent_package import views as package

urlpatterns = [
    path("api/agent/v1/join/", views.join, name="agent-join"),
    path("api/agent/v1/join/status/", views.join_status, name="agent-join-status"),
    path("api/agent/v1/assignments/", views.assignments, name="agent-assignments"),
    path("api/agent/v1/leave/", views.leave, name="agent-leave"),
    path("agent/install.sh", package.install_script, name="agent-installer"),
    path("agent/requirements.txt", package.requirements, name="agent-requirements"),
    path("agent/<str:name>", package.wheel_file, name="agent-wheel"),
]
