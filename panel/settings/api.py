"""Settings of the API and of its description."""

from typing import Any

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "panel.accounts.api.authentication.BearerAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["panel.accounts.api.permissions.HasCapability"],
    "DEFAULT_PAGINATION_CLASS": "panel.accounts.api.pagination.Pages",
    "DEFAULT_PARSER_CLASSES": ["panel.accounts.api.parsers.BoundedJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "panel.accounts.api.schema.ApiSchema",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "drf_standardized_errors.handler.exception_handler",
    "FORMAT_SUFFIX_KWARG": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
DRF_STANDARDIZED_ERRORS = {
    "EXCEPTION_HANDLER_CLASS": "panel.accounts.api.errors.ApiExceptionHandler",
    "ENABLE_IN_DEBUG_FOR_UNHANDLED_EXCEPTIONS": True,
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Fleetdeck API",
    "DESCRIPTION": (
        "Servers, GPUs and their series, rental (accounts, offers, orders, leases, their cost and differences), people, "
        "tokens and the audit trail. Send `Authorization: Bearer <token>`; "
        "a token comes from the settings page or from `POST /api/v1/auth/token/`. Lists are `{next, previous, results}`; "
        "`?limit=` goes up to 500. Times are UTC with their offset, and units stand in the names."
    ),
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/(agent/)?v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "SORT_OPERATION_PARAMETERS": False,
    "ENUM_NAME_OVERRIDES": {
        "RoleEnum": "panel.accounts.enums.Role",
        "ThemeEnum": "panel.accounts.enums.Theme",
        "SeverityEnum": "panel.core.enums.Severity",
        "ServerStateEnum": "fleet.enums.ServerState",
        "GpuStateEnum": "fleet.enums.GpuState",
        "GpuHealthEnum": "fleet.enums.GpuHealth",
        "DriverStateEnum": "fleet.enums.DriverState",
        "AccountHealthEnum": "fleet.enums.AccountHealth",
        "LeaseStateEnum": "fleet.enums.LeaseState",
        "LeaseOriginEnum": "fleet.enums.LeaseOrigin",
        "WantedEnum": "fleet.enums.Wanted",
        "PriceComponentEnum": "fleet.enums.PriceComponent",
        "PriceUnitEnum": "fleet.enums.PriceUnit",
        "DriftKindEnum": "fleet.enums.DriftKind",
        "DriftResolutionEnum": "fleet.enums.DriftResolution",
        "OperationKindEnum": "fleet.enums.OperationKind",
        "OperationStateEnum": "fleet.enums.OperationState",
        "JobKindEnum": "fleet.enums.JobKind",
        "JobStateEnum": "fleet.enums.JobState",
        "StepStateEnum": ["waiting", "running", "done", "failed"],
        "BillingEnum": "fleet.providers.base.Billing",
        "CheckStatusEnum": "panel.core.health.CheckStatus",
        "MachineStatusEnum": "fleet.providers.base.MachineStatus",
        "StockEnum": "fleet.providers.base.Stock",
        "ReasonEnum": "fleet.reasons.Reason",
        "ActivityEnum": "monitoring.activity.Activity",
        "VerdictEnum": "fleet.api.jobs._VERDICTS",
        "LevelEnum": ["raw", "1m", "5m", "1h"],
        "DiagnosisVerdictEnum": "monitoring.api.diagnoses.VERDICTS",
        "DiagnosisLevelEnum": "monitoring.api.diagnoses.LEVELS",
        "DiagnosisStateEnum": "monitoring.diagnosing.enums.ReportState",
        "ChannelKindEnum": "monitoring.delivery.enums.ChannelKind",
        "NoticeKindEnum": "monitoring.delivery.enums.NoticeKind",
        "NoticeStatusEnum": "monitoring.delivery.enums.NoticeStatus",
        "AttemptOutcomeEnum": "monitoring.delivery.enums.AttemptOutcome",
        "ErrorTypeEnum": ["validation_error", "client_error", "server_error"],
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {
        "deepLinking": True,
        # Two hundred operations, opened all at once, keep a browser busy for half a minute.
        "docExpansion": "none",
        "defaultModelsExpandDepth": -1,
        "displayRequestDuration": True,
        "persistAuthorization": False,
        "validatorUrl": None,
    },
}
