"""Accounts, offers, orders, leases, operations, drift and rates over the API."""

from rest_framework.routers import BaseRouter


def register(router: BaseRouter) -> None:
    """Add the resources of what is billed."""
    from fleet.api.leasing.accounts import AccountViewSet, ProviderViewSet
    from fleet.api.leasing.drifts import DriftViewSet
    from fleet.api.leasing.leases import LeaseViewSet
    from fleet.api.leasing.offers import OfferViewSet
    from fleet.api.leasing.operations import OperationViewSet
    from fleet.api.leasing.orders import OrderViewSet
    from fleet.api.leasing.rates import ExchangeRateViewSet

    router.register("providers", ProviderViewSet, basename="provider")
    router.register("accounts", AccountViewSet, basename="account")
    router.register("offers", OfferViewSet, basename="offer")
    router.register("orders", OrderViewSet, basename="order")
    router.register("leases", LeaseViewSet, basename="lease")
    router.register("operations", OperationViewSet, basename="operation")
    router.register("drifts", DriftViewSet, basename="drift")
    router.register("exchange-rates", ExchangeRateViewSet, basename="exchange-rate")
