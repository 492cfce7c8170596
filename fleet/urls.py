"""Addresses that machines use, beside reports and assignments, which are answered outside Django."""

from django.urls import path

from fleet import job_views, views
from fleet.agent_package import views as package

urlpatterns = [
    path("api/agent/v1/join/", views.join, name="agent-join"),
    path("api/agent/v1/join/status/", views.join_status, name="agent-join-status"),
    path("api/agent/v1/leave/", views.leave, name="agent-leave"),
    path("api/agent/v1/jobs/<int:job_id>/", job_views.job, name="agent-job"),
    path("api/agent/v1/speed/down/", job_views.downlink, name="agent-downlink"),
    path("api/agent/v1/speed/up/", job_views.uplink, name="agent-uplink"),
    path("agent/install.sh", package.install_script, name="agent-installer"),
    path("agent/requirements.txt", package.requirements, name="agent-requirements"),
    path("agent/requirements-gateway.txt", package.requirements_gateway, name="agent-requirements-gateway"),
    path("agent/<str:name>", package.wheel_file, name="agent-wheel"),
]
