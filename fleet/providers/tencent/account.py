"""The account behind the key: who it is and what it has left (STS and billing)."""

from typing import Final

from fleet.providers.reading import money, text
from fleet.providers.tencent.rpc import TencentRpc
from panel.core.money import Money

STS_VERSION: Final = "2018-08-13"
BILLING_VERSION: Final = "2018-07-09"
CURRENCY: Final = "CNY"
FEN: Final = 100


class TencentAccount:
    """The calls about the account itself. region: any that the product has."""

    def __init__(self, rpc: TencentRpc, region: str) -> None:
        self._rpc, self._region = rpc, region

    def identity(self) -> str:
        """Return whose key it is (an ARN); every valid key may ask."""
        return text(self._rpc.call("sts", STS_VERSION, "GetCallerIdentity", {}, region=self._region), "Arn")

    def balance(self) -> Money | None:
        """Return what is left to spend. The API tells it in fen, a hundredth of a yuan."""
        answer = self._rpc.call("billing", BILLING_VERSION, "DescribeAccountBalance", {})
        return money(answer.get("Balance"), CURRENCY, divisor=FEN)
