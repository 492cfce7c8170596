"""How the API describes itself: the bearer scheme, the error shape, and which answers every operation can give."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers


class ErrorItemSerializer(serializers.Serializer[Any]):
    """One thing that is wrong."""

    code = serializers.CharField(help_text="Stable word for programs.")
    detail = serializers.CharField(help_text="A sentence for people.")
    attr = serializers.CharField(allow_null=True, help_text="The field that it is about, if any.")


class ErrorSerializer(serializers.Serializer[Any]):
    """The shape of every error."""

    type = serializers.ChoiceField(choices=["validation_error", "client_error", "server_error"])
    errors = ErrorItemSerializer(many=True)


class BearerScheme(OpenApiAuthenticationExtension):
    """`Authorization: Bearer fdt_…`."""

    target_class = "panel.accounts.api.authentication.BearerAuthentication"
    name = "bearerAuth"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:  # noqa: ARG002 (the library's signature)
        """Return the OpenAPI security scheme."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "fdt_<prefix>_<secret>"}


ALWAYS = ("400", "401", "403", "429")
WITH_BODY = ("409", "413", "415")


class ApiSchema(AutoSchema):
    """Adds the error answers that any operation may give."""

    def _get_response_bodies(self, direction: str = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)  # type: ignore[no-untyped-call]
        codes = list(ALWAYS)
        if self.method in ("POST", "PUT", "PATCH", "DELETE"):
            codes += WITH_BODY
        if "{" in self.path or self.method == "GET":
            codes.append("404")
        for code in codes:
            if code not in bodies:
                bodies[code] = self._get_response_for_code(ErrorSerializer, code)  # type: ignore[no-untyped-call]
        return bodies
