"""Addresses that agents use, beside the report's, which is the ingest's."""

from django.urls import path

from fleet import views

urlpatterns = [
    path("api/agent/v1/join/", views.join, name="agent-join"),
    path("api/agent/v1/assignments/", views.assignments, name="agent-assignments"),
    path("api/agent/v1/leave/", views.leave, name="agent-leave"),
]
