"""How the API describes itself: the bearer scheme, the error shape, and which answers every operation can give."""

from typing import Any, Final, Literal

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers

# The error shape of drf-standardized-errors: a code for programs, a sentence for people, the field that it is about.
ERROR: Final = inline_serializer(
    "Error",
    {
        "type": serializers.ChoiceField(choices=["validation_error", "client_error", "server_error"]),
        "errors": inline_serializer(
            "ErrorItem",
            {
                "code": serializers.CharField(),
                "detail": serializers.CharField(),
                "attr": serializers.CharField(allow_null=True),
            },
            many=True,
        ),
    },
)
ALWAYS: Final = ("400", "401", "403", "404", "429")
OF_WRITES: Final = ("409", "413", "415")
WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    """`Authorization: Bearer fdt_…`."""

    target_class = "panel.accounts.api.authentication.BearerAuthentication"
    name = "bearerAuth"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:  # noqa: ARG002 (the library's)
        """Return the OpenAPI security scheme."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "fdt_<prefix>_<secret>"}


class ApiSchema(AutoSchema):
    """Adds the error answers that any operation may give."""

    def _get_response_bodies(self, direction: Literal["request", "response"] = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        for code in (*ALWAYS, *(OF_WRITES if self.method in WRITES else ())):
            if code not in bodies:
                bodies[code] = self._get_response_for_code(ERROR, code)  # type: ignore[no-untyped-call]
        return bodies
