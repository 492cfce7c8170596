"""What the simulated fleet asks of a panel: join tokens and contracts, over its public REST API, like any other program."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import httpx

from fleet.simulation.nvml import SimulationError
from fleet.simulation.plan import ContractPlan, ServerPlan

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
        """Return a one-time token with which this server joins, or joins again when it did before.

        Raises PanelRefusedError or PanelUnreachableError.
        """
        body = {"name": plan.name, "provider": plan.provider, "region": plan.region, "is_simulated": True}
        try:
            answer = await self._ask("POST", "join-tokens/", body)
        except PanelRefusedError as error:
            if error.code == "name_promised":
                await self._take_back_token(plan.name)
                answer = await self._ask("POST", "join-tokens/", body)
            elif error.code == "name_taken":
                answer = await self._ask("POST", f"servers/{await self._known_server(plan.name, error)}/rejoin/", {})
            else:
                raise
        return str(answer["token"])

    async def contract(self, plan: ServerPlan) -> bool:
        """Write down what this server costs, from the day it joined; return False when nothing is to be written.

        Raises PanelRefusedError or PanelUnreachableError.
        """
        if plan.contract is None:
            return False
        found = await self._ask("GET", "servers/", query={"search": plan.name, "is_simulated": "true", "limit": "500"})
        server = next((row for row in found["results"] if row["name"] == plan.name), None)
        if server is None or server["lease"] is not None:
            return False
        await self._ask("POST", "leases/", contract_body(plan, plan.contract, server))
        return True

    async def _known_server(self, name: str, error: PanelRefusedError) -> int:
        """Return the id of the simulated server of this name; a real one keeps its name, and its place."""
        found = await self._ask("GET", "servers/", query={"search": name, "is_simulated": "true", "limit": "500"})
        for server in found["results"]:
            if server["name"] == name:
                return int(server["id"])
        raise error

    async def _take_back_token(self, name: str) -> None:
        """Take back a token of an earlier start that nobody has any more."""
        found = await self._ask("GET", "join-tokens/", query={"is_usable": "true", "limit": "500"})
        for row in found["results"]:
            if row["name"] == name and row["is_simulated"]:
                await self._ask("DELETE", f"join-tokens/{row['id']}/")

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        try:
            response = await self._client.request(method, f"/api/v1/{path}", json=body, params=query)
        except httpx.HTTPError as error:
            raise PanelUnreachableError(f"{self.url} does not answer: {error or type(error).__name__}.") from error
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS or response.is_server_error:
            raise PanelUnreachableError(f"{self.url} answered {response.status_code} to {path}.")
        if response.is_error:
            raise refusal(response, path)
        answer: dict[str, Any] = response.json() if response.content else {}
        return answer


def contract_body(plan: ServerPlan, contract: ContractPlan, server: Mapping[str, Any]) -> dict[str, Any]:
    """Return a contract as the API takes it: the machine as planned, paid since it joined."""
    model = plan.cards[0].profile
    joined_at = datetime.fromisoformat(server["created_at"])
    body: dict[str, Any] = {
        "name": plan.name,
        "server": server["id"],
        "landlord": plan.provider,
        "region": plan.region,
        "billing": contract.billing,
        "started_at": server["created_at"],
        "gpu_model": model.name,
        "gpu_count": len(plan.cards),
        "prices": [{"amount": contract.amount, "currency": contract.currency, "unit": contract.unit}],
    }
    if contract.days_left is not None:
        body["renews_at"] = (joined_at + timedelta(days=contract.days_left)).isoformat()
    return body


def refusal(response: httpx.Response, path: str) -> PanelRefusedError:
    """Return the error that tells the panel's own words, when it gave some."""
    try:
        first = response.json()["errors"][0]
        return PanelRefusedError(f"The panel refused {path}: {first['detail']}", code=str(first["code"]))
    except (ValueError, LookupError, TypeError):
        return PanelRefusedError(f"The panel answered {response.status_code} to {path}.")
