"""Providers and the accounts there, over the API: added with a live check, changed, synced, removed."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.leasing.filters import AccountFilters
from fleet.api.leasing.serializers import AccountSerializer, ProviderSerializer, amount
from fleet.api.servers import ReasonSerializer
from fleet.models import ProviderAccount
from fleet.providers.base import Field, abilities
from fleet.providers.registry import PROVIDERS
from fleet.selectors.leasing import account_list
from fleet.services.accounts import account_create, account_remove, account_sync_soon, account_update
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability


def fields_shown(fields: tuple[Field, ...]) -> list[dict[str, Any]]:
    """Return a provider's fields as the API shows them."""
    return [
        {
            "name": field.name,
            "label": str(field.label),
            "is_secret": field.is_secret,
            "is_required": field.is_required,
            "default": field.default,
            "help": str(field.help),
            "choices": {value: str(label) for value, label in field.choices.items()},
        }
        for field in fields
    ]


class ProviderViewSet(viewsets.ViewSet):
    """The kinds of provider that this panel knows."""

    capability: ClassVar[CapabilityTable] = Capability.FLEET_VIEW

    @extend_schema(summary="List kinds of provider", responses={200: ProviderSerializer(many=True)})
    def list(self, _request: Request) -> Response:
        """Return every kind with what it can do and what an account there needs."""
        kinds = [
            {
                "kind": kind,
                "label": str(provider.label),
                "currency": provider.currency,
                "abilities": sorted(abilities(provider)),
                "credential_fields": fields_shown(tuple(provider.credential_fields)),
                "option_fields": fields_shown(tuple(provider.option_fields)),
                "order_fields": fields_shown(tuple(getattr(provider, "order_fields", ()))),
                "docs_url": provider.docs_url,
            }
            for kind, provider in PROVIDERS.items()
        ]
        return Response(ProviderSerializer(kinds, many=True).data)


class AccountUpdateSerializer(serializers.Serializer[Any]):
    """What can be changed of an account. A new key or new options are tried at the provider first."""

    name = serializers.CharField(max_length=100, required=False)
    credentials = serializers.DictField(
        child=serializers.CharField(max_length=16_384, allow_blank=True),
        required=False,
        write_only=True,
        help_text="By the names of the provider's credential fields. Never shown again.",
    )
    options = serializers.DictField(child=serializers.CharField(max_length=4096, allow_blank=True), required=False)
    is_adopting = serializers.BooleanField(required=False, help_text="Adopt machines that are found in the account.")
    is_paused = serializers.BooleanField(required=False, help_text="Do not ask the provider.")
    is_same_login = serializers.BooleanField(
        required=False,
        write_only=True,
        help_text="Confirms, while leases are open, that a new key is of the same login; needed only where the provider "
        "does not say whose key it is and a machine is not shown to it.",
    )
    monthly_budget = amount(min_value=0, required=False, allow_null=True)
    max_price_per_hour = amount(min_value=0, required=False, allow_null=True)


class AccountCreateSerializer(AccountUpdateSerializer):
    """What a new account needs."""

    name = serializers.CharField(max_length=100)
    kind = serializers.CharField(max_length=32, help_text="One of the kinds of provider.")
    credentials = serializers.DictField(
        child=serializers.CharField(max_length=16_384, allow_blank=True), write_only=True, default=dict
    )
    is_paused = None  # type: ignore[assignment]  # a new account is asked at once
    is_same_login = None  # type: ignore[assignment]  # it has no leases yet


@extend_schema_view(
    list=extend_schema(summary="List provider accounts"),
    retrieve=extend_schema(summary="Show a provider account"),
)
class AccountViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[ProviderAccount]):
    """Billed logins at providers."""

    queryset = ProviderAccount.objects.none()
    serializer_class = AccountSerializer
    lookup_value_regex = r"\d+"
    ordering = ("id",)
    filter_backends = (DjangoFilterBackend,)
    filterset_class = AccountFilters
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve"), Capability.FLEET_VIEW),
        **dict.fromkeys(("create", "partial_update", "destroy"), Capability.ACCOUNTS_MANAGE),
        "sync": Capability.LEASES_MANAGE,
    }

    def get_queryset(self) -> QuerySet[ProviderAccount]:
        """Return every account that was not removed."""
        return account_list()

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter lists alone."""
        return queryset if self.detail else super().filter_queryset(queryset)

    def _answer(self, pk: int | str, code: int) -> Response:
        return Response(self.get_serializer(self.get_queryset().get(pk=pk)).data, status=code)

    @extend_schema(
        summary="Add a provider account", request=AccountCreateSerializer, responses={201: AccountSerializer}
    )
    def create(self, request: Request) -> Response:
        """Ask the provider whether the key works, then keep it encrypted."""
        account = account_create(actor=Actor.from_request(request), **body_of(request, AccountCreateSerializer))
        return self._answer(account.pk, status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a provider account", request=AccountUpdateSerializer, responses={200: AccountSerializer}
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change what stands in the body."""
        body = body_of(request, AccountUpdateSerializer)
        account_update(account_id=int(pk), actor=Actor.from_request(request), **body)
        return self._answer(pk, status.HTTP_200_OK)

    @extend_schema(
        summary="Remove a provider account",
        description="Refused (409) while a lease of it is open: without the key nobody could end it.",
        responses={204: None},
    )
    def destroy(self, request: Request, pk: str) -> Response:
        """Wipe the key; the history of its leases stays."""
        account_remove(account_id=int(pk), actor=Actor.from_request(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(summary="Ask the provider now", request=ReasonSerializer, responses={202: AccountSerializer})
    @action(detail=True, methods=["post"])
    def sync(self, request: Request, pk: str) -> Response:
        """Compare the account with its provider, and fetch its offers, with the next tick (5 s)."""
        account_sync_soon(account_id=int(pk), actor=Actor.from_request(request))
        return self._answer(pk, status.HTTP_202_ACCEPTED)
