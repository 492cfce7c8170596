"""Paths of the API that hang below other resources, beside what `register` adds to the router."""

from django.urls import path

from monitoring.api.series import GpuSeriesView, ServerSeriesView
from monitoring.api.waste import WasteView

urlpatterns = [
    path("servers/<int:pk>/series/", ServerSeriesView.as_view(), name="server-series"),
    path("waste/", WasteView.as_view(), name="waste"),
    path("gpus/<int:pk>/series/", GpuSeriesView.as_view(), name="gpu-series"),
]
