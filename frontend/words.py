"""Sentences for what is stored as codes: reasons of states, kinds of events, actions of the audit trail."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from endpoints.enums import Phase
from fleet.enums import (
    AccountHealth,
    DriftKind,
    DriverState,
    GpuState,
    JobKind,
    JobState,
    LeaseState,
    OperationKind,
    OperationState,
    ServerState,
)
from fleet.reasons import REASON_WORDS, Reason
from fleet.xids import fault_meaning
from frontend.formatting import MISSING_REASONS
from frontend.serving.words import reason_said
from monitoring.diagnosis.enums import Verdict
from monitoring.diagnosis.words import verdict_name
from monitoring.golive.enums import Outcome
from monitoring.golive.words import outcome_name

# Reasons of server and GPU states that are no reason of the wire (those are in frontend.formatting).
STATE_REASONS: Final[Mapping[str, Promise]] = {
    "agent_silent": gettext_lazy("the agent is silent"),
    "rejoined": gettext_lazy("joined again"),
    "left": gettext_lazy("the agent said goodbye"),
    "retired": gettext_lazy("retired by a person"),
    "ordered": gettext_lazy("its machine was ordered"),
    "rebuilding": gettext_lazy("another machine is being built for it"),
    "machine_replaced": gettext_lazy("of a machine that was replaced"),
    "lease_ended": gettext_lazy("its machine was ended"),
    "server_silent": gettext_lazy("its server is silent"),
    "server_retired": gettext_lazy("its server is retired"),
    "not_enumerated": gettext_lazy("the driver no longer lists it"),
    "gpu_lost": gettext_lazy("a GPU is lost"),
    "gpu_missing": gettext_lazy("a GPU is missing"),
    "gpu_degraded": gettext_lazy("a GPU is degraded"),
    "gpu_unknown": gettext_lazy("a GPU does not answer"),
}


def reason_words(reason: str) -> str:
    """Return the words for a state's reason; a person's own note, and a code that is not listed, stay as they are."""
    if not reason:
        return ""
    if reason.startswith("driver_") and (state := reason.removeprefix("driver_")) in DriverState.values:
        return _("the driver has not answered yet") if state == DriverState.UNKNOWN else str(DriverState(state).label)
    words = STATE_REASONS.get(reason) or MISSING_REASONS.get(reason)
    if words is None and reason in Reason.values:
        words = REASON_WORDS[Reason(reason)].sentence  # no other machine came to be
    return str(words) if words is not None else reason


def _golive(data: Mapping[str, Any]) -> str:
    outcome = str(data.get("outcome") or "")
    known = outcome in {each.value for each in Outcome}
    return _("Go-live test: %(outcome)s") % {"outcome": outcome_name(Outcome(outcome)) if known else outcome}


def _label(choices: Any, value: object) -> str:
    return str(choices(value).label) if value in choices.values else str(value)


def _state_change(choices: Any, data: Mapping[str, Any]) -> str:
    words = {"before": _label(choices, data.get("from", "")), "after": _label(choices, data.get("to", ""))}
    reason = reason_words(str(data.get("reason") or data.get("detail") or ""))
    if reason:
        return _("%(before)s → %(after)s: %(reason)s") % {**words, "reason": reason}
    return _("%(before)s → %(after)s") % words


def _driver(data: Mapping[str, Any]) -> str:
    return _("Driver: %(change)s") % {"change": _state_change(DriverState, data)}


def _joined(data: Mapping[str, Any]) -> str:
    if data.get("address"):
        return _("A machine joined from %(address)s") % {"address": data["address"]}
    return _("A machine joined")


def _found(data: Mapping[str, Any]) -> str:
    count = int(data.get("count") or 0)
    return ngettext("%(count)d GPU found: %(name)s", "%(count)d GPUs found: %(name)s", count) % {
        "count": count,
        "name": data.get("name", ""),
    }


def _slices_removed(data: Mapping[str, Any]) -> str:
    count = int(data.get("count") or 0)
    return ngettext("%(count)d MIG instance removed", "%(count)d MIG instances removed", count) % {"count": count}


def _summary(data: Mapping[str, Any]) -> str:
    states = data.get("states") or {}
    told = ", ".join(f"{_label(GpuState, state)} × {count}" for state, count in states.items())
    return _("Changes of GPU states, taken together: %(states)s") % {"states": told or "—"}


def _fault(kind: str, data: Mapping[str, Any]) -> str:
    code = data.get("code")
    meaning = fault_meaning(kind, code if isinstance(code, int) else None)
    return _("%(kind)s %(code)s: %(meaning)s") % {"kind": kind.upper(), "code": code, "meaning": meaning.sentence}


def _lease(data: Mapping[str, Any]) -> str:
    reason = str(data.get("reason") or "")
    told = str(REASON_WORDS[Reason(reason)].sentence) if reason in Reason.values and reason else ""
    return _state_change(LeaseState, {**data, "reason": told})


def _renewal(data: Mapping[str, Any]) -> str:
    words = {"day": str(data.get("renews_at") or "")[:10]}
    if data.get("is_renewing"):
        return _("The paid term renews itself on %(day)s; until then it can be ended") % words
    return _("The paid term ends on %(day)s and does not renew itself") % words


def _account_health(data: Mapping[str, Any]) -> str:
    return _("Provider account: %(change)s") % {
        "change": _state_change(AccountHealth, {**data, "reason": data.get("detail")})
    }


def _drift(data: Mapping[str, Any]) -> str:
    words = {"kind": _label(DriftKind, data.get("kind", "")), "name": data.get("name") or data.get("external_id", "")}
    return _("Differs from the provider: %(kind)s: %(name)s") % words


def _operation(data: Mapping[str, Any]) -> str:
    words = {
        "kind": _label(OperationKind, data.get("kind", "")),
        "state": _label(OperationState, data.get("state", "")),
    }
    return _("%(kind)s: %(state)s") % words


# Why a job did not succeed.
JOB_REASONS: Final[Mapping[str, Promise]] = {
    "forbidden": gettext_lazy("the policy of the machine forbids it"),
    "unknown_kind": gettext_lazy("the agent is too old to know how"),
    "interrupted": gettext_lazy("the agent was restarted meanwhile"),
    "time_limit": gettext_lazy("it took too long and was stopped"),
    "crashed": gettext_lazy("it ended without a result"),
    "not_begun": gettext_lazy("the agent did not come for it"),
    "no_result": gettext_lazy("the agent told no outcome"),
}


def job_reason_words(reason: str) -> str:
    """Return why a job did not succeed; a code that is not listed stays as it is."""
    return str(JOB_REASONS.get(reason, reason))


def _job(data: Mapping[str, Any]) -> str:
    words = {"kind": _label(JobKind, data.get("kind", "")), "state": _label(JobState, data.get("state", ""))}
    if reason := job_reason_words(str(data.get("reason") or "")):
        return _("%(kind)s: %(state)s, %(reason)s") % {**words, "reason": reason}
    return _("%(kind)s: %(state)s") % words


def _phase(data: Mapping[str, Any]) -> str:
    reason = str(data.get("reason") or "")
    return _state_change(Phase, {**data, "reason": reason_said(reason).sentence if reason else ""})


def _rollout(template: Promise, data: Mapping[str, Any]) -> str:
    said = str(template) % {"revision": data.get("revision", "?"), "before": data.get("from") or "—"}
    reason = str(data.get("reason") or "")
    why = reason_said(reason).sentence if reason else ""
    return _("%(said)s: %(why)s") % {"said": said, "why": why} if why else said


def _replica(template: Promise, data: Mapping[str, Any]) -> str:
    said = str(template) % {"replica": data.get("replica", "?"), "server": data.get("server", "?")}
    reason = str(data.get("reason") or "")
    why = reason_said(reason).sentence if reason else ""
    return _("%(said)s: %(why)s") % {"said": said, "why": why} if why else said


# Of endpoints: each with what it says before its reason.
_ROLLOUT_SENTENCES: Final[Mapping[str, Promise]] = {
    "rollout.started": gettext_lazy("Revision %(revision)s is being rolled out"),
    "rollout.succeeded": gettext_lazy("Revision %(revision)s serves"),
    "rollout.returned": gettext_lazy("Revision %(revision)s was given up, revision %(before)s serves on"),
    "rollout.failed": gettext_lazy("Revision %(revision)s was given up"),
    "rollout.cancelled": gettext_lazy("The rollout of revision %(revision)s was called off"),
}
_REPLICA_SENTENCES: Final[Mapping[str, Promise]] = {
    "replica.placed": gettext_lazy("Replica #%(replica)s is placed on %(server)s"),
    "replica.ready": gettext_lazy("Replica #%(replica)s on %(server)s answers"),
    "replica.not_ready": gettext_lazy("Replica #%(replica)s on %(server)s answers no more"),
    "replica.stopped": gettext_lazy("Replica #%(replica)s on %(server)s has stopped"),
    "replica.failed": gettext_lazy("Replica #%(replica)s on %(server)s failed"),
    "replica.lost": gettext_lazy("Replica #%(replica)s on %(server)s counts as lost"),
    "replica.pending": gettext_lazy("Replica #%(replica)s on %(server)s waits"),
}


def _diagnosed(data: Mapping[str, Any]) -> str:
    try:
        verdict = verdict_name(Verdict(str(data.get("verdict"))))
    except ValueError:
        return _("A diagnosis is done")
    return _("A diagnosis says: %(verdict)s") % {"verdict": verdict}


def _alert_words(data: Mapping[str, Any]) -> str:
    from monitoring.alerts.telling import leading_rule
    from monitoring.alerts.words import rule_title

    return rule_title(leading_rule(list(data.get("rules") or [])))


EVENT_SENTENCES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "alert.fired": lambda data: _("Alert: %(rule)s") % {"rule": _alert_words(data)},
    "alert.resolved": lambda data: _("Alert over: %(rule)s") % {"rule": _alert_words(data)},
    "diagnosis.done": _diagnosed,
    "diagnosis.failed": lambda _data: _("A diagnosis failed"),
    "diagnosis.cancelled": lambda _data: _("A diagnosis was called off"),
    "server.joined": _joined,
    "server.state_changed": lambda data: _state_change(ServerState, data),
    "server.driver_changed": _driver,
    "gpu.state_changed": lambda data: _state_change(GpuState, data),
    "gpu.found": _found,
    "gpu.states_changed": _summary,
    "gpu.forgotten": lambda _data: _("Forgotten: it was taken out on purpose"),
    "gpu.slices_removed": _slices_removed,
    "gpu.xid": lambda data: _fault("xid", data),
    "gpu.sxid": lambda data: _fault("sxid", data),
    "lease.state_changed": _lease,
    "lease.renews_soon": _renewal,
    "lease.adopted": lambda data: _("Adopted from account %(account)s") % {"account": data.get("account", "")},
    "account.health_changed": _account_health,
    "drift.found": _drift,
    "operation.ended": _operation,
    "job.ended": _job,
    "golive.ended": _golive,
    "endpoint.phase_changed": _phase,
    **{kind: partial(_rollout, template) for kind, template in _ROLLOUT_SENTENCES.items()},
    **{kind: partial(_replica, template) for kind, template in _REPLICA_SENTENCES.items()},
}

AUDIT_SENTENCES: Final[Mapping[str, Promise]] = {
    "auth.login": gettext_lazy("Logged in"),
    "auth.logout": gettext_lazy("Logged out"),
    "auth.login_failed": gettext_lazy("Log-in refused"),
    "session.end": gettext_lazy("Session ended"),
    "session.end_all": gettext_lazy("Other sessions ended"),
    "user.create": gettext_lazy("User made"),
    "user.update": gettext_lazy("User changed"),
    "user.delete": gettext_lazy("User deleted"),
    "user.password": gettext_lazy("Password changed"),
    "user.preferences": gettext_lazy("Own settings changed"),
    "user.two_factor_start": gettext_lazy("Second factor being set up"),
    "user.two_factor_on": gettext_lazy("Second factor switched on"),
    "user.two_factor_off": gettext_lazy("Second factor switched off"),
    "user.passkey_start": gettext_lazy("Passkey being added"),
    "user.passkey_add": gettext_lazy("Passkey added"),
    "user.passkey_rename": gettext_lazy("Passkey renamed"),
    "user.passkey_remove": gettext_lazy("Passkey removed"),
    "token.create": gettext_lazy("API token made"),
    "token.revoke": gettext_lazy("API token revoked"),
    "secrets.rotate": gettext_lazy("Encryption keys rotated"),
    "join_token.create": gettext_lazy("Join token made"),
    "join_token.revoke": gettext_lazy("Join token taken back"),
    "agent.revoke": gettext_lazy("Agent's token revoked"),
    "agent.configure": gettext_lazy("Agent's intervals changed"),
    "gpu.forget": gettext_lazy("GPU forgotten"),
    "server.update": gettext_lazy("Server changed"),
    "server.retire": gettext_lazy("Server retired"),
    "server.remove": gettext_lazy("Server removed for good"),
    "account.create": gettext_lazy("Provider account added"),
    "account.update": gettext_lazy("Provider account changed"),
    "account.sync": gettext_lazy("Provider account asked now"),
    "account.remove": gettext_lazy("Provider account removed"),
    "job.create": gettext_lazy("Job given to an agent"),
    "job.cancel": gettext_lazy("Job cancelled"),
    "lease.order": gettext_lazy("Machine ordered"),
    "lease.start": gettext_lazy("Machine's start asked for"),
    "lease.stop": gettext_lazy("Machine's stop asked for"),
    "lease.reboot": gettext_lazy("Machine's restart asked for"),
    "lease.terminate": gettext_lazy("Machine's end asked for"),
    "lease.snapshot": gettext_lazy("Snapshot asked for"),
    "lease.type_in": gettext_lazy("Contract added"),
    "lease.update": gettext_lazy("Contract's terms changed"),
    "lease.close": gettext_lazy("Contract closed"),
    "lease.attach": gettext_lazy("Contract attached to a server"),
    "rate.enter": gettext_lazy("Exchange rate entered"),
    "rate.remove": gettext_lazy("Exchange rate removed"),
    "installation.keep": gettext_lazy("Installation id kept for this database"),
    "installation.renew": gettext_lazy("New installation id taken"),
    "drift.adopt": gettext_lazy("Found machine adopted"),
    "drift.end": gettext_lazy("Found machine being ended"),
    "drift.accept": gettext_lazy("Difference accepted"),
    "drift.ignore": gettext_lazy("Difference ignored for a time"),
    "server.maintenance": gettext_lazy("Maintenance switched"),
    "server.cordon": gettext_lazy("Server cordoned"),
    "server.uncordon": gettext_lazy("Server's cordon ended"),
    "serving.update": gettext_lazy("How a server serves changed"),
    "endpoint.create": gettext_lazy("Endpoint made"),
    "endpoint.update": gettext_lazy("Endpoint's settings changed"),
    "endpoint.scale": gettext_lazy("Number of replicas changed"),
    "endpoint.deploy": gettext_lazy("Revision deployed"),
    "endpoint.rollback": gettext_lazy("Rolled back"),
    "endpoint.restart": gettext_lazy("Replicas restarted"),
    "endpoint.pause": gettext_lazy("Rollout paused"),
    "endpoint.resume": gettext_lazy("Rollout resumed"),
    "endpoint.cancel": gettext_lazy("Rollout called off"),
    "endpoint.gate_again": gettext_lazy("Go-live test of a gate wanted again"),
    "golive.start": gettext_lazy("Go-live test begun"),
    "golive.cancel": gettext_lazy("Go-live test called off"),
    "endpoint.delete": gettext_lazy("Endpoint deleted"),
    "gateway.create": gettext_lazy("Gateway made"),
    "gateway.update": gettext_lazy("Gateway changed"),
    "gateway.delete": gettext_lazy("Gateway given up"),
    "key.create": gettext_lazy("Caller's key made"),
    "key.revoke": gettext_lazy("Caller's key revoked"),
    "probe.create": gettext_lazy("Probe made"),
    "probe.update": gettext_lazy("Probe changed"),
    "probe.delete": gettext_lazy("Probe removed"),
    "probe.run": gettext_lazy("Probed once"),
    "diagnosis.start": gettext_lazy("Diagnosis begun"),
    "diagnosis.cancel": gettext_lazy("Diagnosis called off"),
    "probe.check": gettext_lazy("A probe tried before it was saved"),
    "channel.create": gettext_lazy("Channel made"),
    "channel.update": gettext_lazy("Channel changed"),
    "channel.replace_secret": gettext_lazy("Secret of a channel replaced"),
    "channel.enable": gettext_lazy("Channel switched on"),
    "channel.disable": gettext_lazy("Channel switched off"),
    "channel.delete": gettext_lazy("Channel removed"),
    "channel.test": gettext_lazy("Channel tested"),
    "channel.unsubscribe": gettext_lazy("A recipient asked to get no more"),
    "alert.acknowledge": gettext_lazy("Alert acknowledged"),
    "alert.unacknowledge": gettext_lazy("Acknowledgement of an alert taken back"),
    "alert.note": gettext_lazy("Alert noted on"),
    "alert_rule.create": gettext_lazy("Rule made"),
    "alert_rule.update": gettext_lazy("Rule changed"),
    "alert_rule.delete": gettext_lazy("Rule removed"),
    "alert_rule.override": gettext_lazy("Rule differs for some"),
    "alert_rule.override_remove": gettext_lazy("Rule is for them what it is for everybody"),
    "silence.create": gettext_lazy("Silence made"),
    "silence.end": gettext_lazy("Silence ended or moved"),
    "notification.resend": gettext_lazy("Notification sent again"),
    "notification.dismiss": gettext_lazy("Notification dismissed"),
    "notification.dismiss_all": gettext_lazy("All undeliverable notifications dismissed"),
    "secret.set": gettext_lazy("Secret kept"),
    "secret.delete": gettext_lazy("Secret forgotten"),
}


def event_sentence(kind: str, data: Mapping[str, Any]) -> str:
    """Return what an event says; for a kind that this page does not know yet, the kind itself."""
    sentence = EVENT_SENTENCES.get(kind)
    return sentence(data) if sentence is not None else kind


def audit_sentence(action: str) -> str:
    """Return what an audit entry says; for an action that this page does not know yet, the action itself."""
    return str(AUDIT_SENTENCES.get(action, action))
