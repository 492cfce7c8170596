"""What the simulated fleet asks of a panel: join tokens, over its public REST API, like any other program."""

from collections.abc import Mapping
from typing import Any, Final

import httpx

from fleet.simulation.nvml import SimulationError
from fleet.simulation.plan import ServerPlan

TIMEOUT_SECONDS: Final = 10.0


class PanelRefusedError(SimulationError):
    """The panel answered with a 4xx: asking again will not help. code: the panel's, for programs."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class PanelUnreachableError(SimulationError):
    """The panel did not answer, or not yet; asking again may help."""


class PanelClient:
    """The panel's REST API, with an API token."""

    def __init__(self, *, url: str, token: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        self._client = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT_SECONDS,
            transport=transport,
        )

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def join_token(self, plan: ServerPlan) -> str:
        """Return a one-time token with which this server joins. Raises PanelRefusedError or PanelUnreachableError."""
        body = {"name": plan.name, "provider": plan.provider, "region": plan.region, "is_simulated": True}
        answer = await self._post("/api/v1/join-tokens/", body)
        return str(answer["token"])

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            response = await self._client.post(path, json=body)
        except httpx.HTTPError as error:
            raise PanelUnreachableError(f"{self.url} does not answer: {error or type(error).__name__}.") from error
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS or response.is_server_error:
            raise PanelUnreachableError(f"{self.url} answered {response.status_code} to {path}.")
        if response.is_error:
            raise refusal(response, path)
        answer: dict[str, Any] = response.json()
        return answer


def refusal(response: httpx.Response, path: str) -> PanelRefusedError:
    """Return the error that tells the panel's own words, when it gave some."""
    try:
        first = response.json()["errors"][0]
        return PanelRefusedError(f"The panel refused {path}: {first['detail']}", code=str(first["code"]))
    except (ValueError, LookupError, TypeError):
        return PanelRefusedError(f"The panel answered {response.status_code} to {path}.")
