"""The fake servers of all vendors whose adapters speak HTTP."""

from tests.fakes.runpod import FakeRunPod

VENDORS = (FakeRunPod,)
