"""Rules over the API: what is watched, changed, replayed; what differs for some subjects."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from monitoring.alerts.acting import override_remove, override_set, rule_create, rule_delete, rule_update
from monitoring.alerts.definitions import laid_over
from monitoring.alerts.models import Rule, RuleOverride
from monitoring.alerts.preview import DAYS, preview
from monitoring.alerts.rules import base_of
from monitoring.alerts.selectors import rule_list
from monitoring.alerts.settings import settings_checked
from monitoring.alerts.words import rule_title
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.enums import Severity


class OverrideSerializer(serializers.ModelSerializer[RuleOverride]):
    """What a rule is for some subjects."""

    class Meta:
        model = RuleOverride
        fields = [
            "id", "subject_kind", "subject_id", "label_name", "label_value", "settings", "severity", "is_enabled",
            "created_at", "created_by_name",
        ]  # fmt: skip
        read_only_fields = fields


class RuleSerializer(serializers.ModelSerializer[Rule]):
    """One thing that is watched."""

    title = serializers.SerializerMethodField()
    family = serializers.SerializerMethodField()
    effective_severity = serializers.SerializerMethodField(help_text="The rule's own, or what its definition says.")
    overrides = OverrideSerializer(many=True)

    class Meta:
        model = Rule
        fields = [
            "id", "key", "name", "title", "kind", "family", "severity", "effective_severity", "settings", "scope",
            "is_builtin", "is_enabled", "version", "created_at", "created_by_name", "overrides",
        ]  # fmt: skip
        read_only_fields = fields

    def get_title(self, rule: Rule) -> str:
        """Return what it is called, in the reader's language."""
        return rule_title(rule.key, rule.name)

    def get_family(self, rule: Rule) -> str:
        """Return what makes one incident with it."""
        return str(base_of(rule).family)

    def get_effective_severity(self, rule: Rule) -> str:
        """Return the severity in force."""
        return str(base_of(rule).severity)


class RuleBodySerializer(serializers.Serializer[Any]):
    """What a rule of one's own is made of."""

    name = serializers.CharField(max_length=100)
    settings = serializers.DictField(
        help_text="series, operator (above, below, absent, changed, share), limit, clear, share, clear_share, window_seconds,"
        " stale_seconds, samples, for_seconds, clear_seconds, no_data (freeze, alert), is_digest."
    )
    severity = serializers.ChoiceField(Severity.choices, required=False)
    scope = serializers.DictField(child=serializers.CharField(max_length=200), required=False, help_text="Labels.")


class RuleChangeSerializer(serializers.Serializer[Any]):
    """What may be changed of a rule."""

    name = serializers.CharField(max_length=100, required=False)
    settings = serializers.DictField(required=False, help_text="Replaces all; of a built-in rule what differs from it.")
    severity = serializers.ChoiceField(
        Severity.choices, allow_blank=True, required=False, help_text="Empty: the definition's own."
    )
    scope = serializers.DictField(child=serializers.CharField(max_length=200), required=False)
    is_enabled = serializers.BooleanField(required=False)


class OverrideBodySerializer(serializers.Serializer[Any]):
    """For whom a rule differs, and how."""

    subject_kind = serializers.CharField(max_length=16, required=False, allow_blank=True)
    subject_id = serializers.IntegerField(min_value=0, max_value=2**62, required=False, allow_null=True)
    label_name = serializers.CharField(max_length=64, required=False, allow_blank=True)
    label_value = serializers.CharField(max_length=200, required=False, allow_blank=True)
    settings = serializers.DictField(required=False)
    severity = serializers.ChoiceField(Severity.choices, allow_blank=True, required=False)
    is_enabled = serializers.BooleanField(required=False, allow_null=True)


class PreviewBodySerializer(serializers.Serializer[Any]):
    """On what a rule is replayed, with settings that are not saved."""

    subject_kind = serializers.CharField(max_length=16)
    subject_id = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    settings = serializers.DictField(required=False)
    days = serializers.IntegerField(min_value=1, max_value=DAYS, required=False)


class PreviewSerializer(serializers.Serializer[Any]):
    """What it would have told."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    messages = serializers.IntegerField(
        help_text="Openings, raises, ends and notices of flapping; reminders not counted."
    )
    told = serializers.DictField(child=serializers.IntegerField())
    firing_seconds = serializers.FloatField()
    opened = serializers.ListField(child=serializers.DictField())
    sentence = serializers.CharField()


@extend_schema_view(list=extend_schema(summary="List rules"), retrieve=extend_schema(summary="Show a rule"))
class AlertRuleViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Rule]):
    """Rules of alerts."""

    queryset = Rule.objects.none()
    serializer_class = RuleSerializer
    lookup_value_regex = r"\d{1,18}"
    ordering = "id"
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve", "preview"), Capability.FLEET_VIEW),
        **dict.fromkeys(
            ("create", "partial_update", "destroy", "override", "override_remove"), Capability.ALERTS_MANAGE
        ),
    }

    def get_queryset(self) -> QuerySet[Rule]:
        """Return every rule with its differences."""
        return rule_list().prefetch_related("overrides")

    def _answer(self, rule_id: int, code: int = status.HTTP_200_OK) -> Response:
        return Response(RuleSerializer(self.get_queryset().get(pk=rule_id)).data, status=code)

    @extend_schema(summary="Make a rule", request=RuleBodySerializer, responses={201: RuleSerializer})
    def create(self, request: Request) -> Response:
        """Watch a series from now on."""
        rule = rule_create(actor=Actor.from_request(request), **body_of(request, RuleBodySerializer))
        return self._answer(rule.pk, status.HTTP_201_CREATED)

    @extend_schema(summary="Change a rule", request=RuleChangeSerializer, responses=RuleSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """It is judged anew from then on."""
        body = body_of(request, RuleChangeSerializer, partial=True)
        rule_update(actor=Actor.from_request(request), rule_id=int(pk), **body)
        return self._answer(int(pk))

    @extend_schema(summary="Remove a rule", responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Built-in rules are switched off instead."""
        rule_delete(actor=Actor.from_request(request), rule_id=int(pk))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(summary="Let a rule differ for some", request=OverrideBodySerializer, responses=RuleSerializer)
    @action(detail=True, methods=["post"], url_path="overrides")
    def override(self, request: Request, pk: str) -> Response:
        """For one subject, or for all with a label; saying it again replaces it."""
        override_set(actor=Actor.from_request(request), rule_id=int(pk), **body_of(request, OverrideBodySerializer))
        return self._answer(int(pk))

    @extend_schema(summary="Take a difference back", responses={204: None})
    @action(detail=True, methods=["delete"], url_path=r"overrides/(?P<override_id>\d{1,18})")
    def override_remove(self, request: Request, pk: str, override_id: str) -> Response:
        """The rule is for them what it is for everybody."""
        override_remove(actor=Actor.from_request(request), rule_id=int(pk), override_id=int(override_id))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(summary="Replay a rule", request=PreviewBodySerializer, responses=PreviewSerializer)
    @action(detail=True, methods=["post"])
    def preview(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (in kwargs)
        """What it would have told in the last days, through the same conditions and the same noise rules."""
        body = body_of(request, PreviewBodySerializer)
        rule = self.get_object()
        given = settings_checked(rule.kind, body.get("settings") or {}, is_builtin=rule.is_builtin)
        key = (body["subject_kind"], body["subject_id"])
        found = preview(laid_over(base_of(rule), given), key, at=now(), days=body.get("days", DAYS))
        opened = [{"at": at, "seconds": seconds} for at, seconds in found.opened]
        sentence = _("It would have fired %(times)s times and sent %(messages)s messages.") % {
            "times": len(opened), "messages": found.messages,
        }  # fmt: skip
        return Response(
            {
                "start": found.start, "end": found.end, "messages": found.messages, "told": found.told,
                "firing_seconds": found.firing_seconds, "opened": opened, "sentence": sentence,
            }
        )  # fmt: skip
