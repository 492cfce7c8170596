"""Every provider that the panel knows, by kind."""

from collections.abc import Mapping
from typing import Final

import httpx
from django.utils.translation import gettext as _

from fleet.providers.aliyun.adapter import Aliyun
from fleet.providers.autodl.adapter import AutoDl
from fleet.providers.base import Provider
from fleet.providers.compshare.adapter import Compshare
from fleet.providers.lambda_cloud.adapter import Lambda
from fleet.providers.runpod.adapter import RunPod
from fleet.providers.simulated.adapter import Simulated
from fleet.providers.static.adapter import Static
from fleet.providers.tencent.adapter import Tencent
from fleet.providers.vast.adapter import Vast
from fleet.providers.verda.adapter import Verda
from panel.core.errors import InvalidInput

PROVIDERS: Final[Mapping[str, type[Provider]]] = {
    provider.kind: provider
    for provider in (
        Static,
        Simulated,
        RunPod,
        Lambda,
        Vast,
        Verda,
        Aliyun,
        Tencent,
        AutoDl,
        Compshare,
    )
}


def provider_type(kind: str) -> type[Provider]:
    """Return the class of a kind. Raises InvalidInput for a kind that is not known."""
    try:
        return PROVIDERS[kind]
    except KeyError:
        raise InvalidInput(_("There is no provider of that kind."), field="kind") from None


def transport_for(kind: str) -> httpx.BaseTransport | None:  # noqa: ARG001 (tests put a fake server in here)
    """Return the way to a provider's servers; None is the guarded one to the network."""
    return None


def connect(kind: str, *, credentials: Mapping[str, str], options: Mapping[str, str], account: str = "") -> Provider:
    """Return one account at a provider, ready to be asked. Raises InvalidInput for an unknown kind."""
    return provider_type(kind)(credentials=credentials, options=options, account=account, transport=transport_for(kind))
