"""The account behind the key: who it is, what it has left, what was billed (STS and BSS)."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from fleet.providers.aliyun.rpc import AliyunRpc
from fleet.providers.errors import NotUnderstood
from fleet.providers.reading import money, text
from panel.core.money import Money

STS_HOST: Final = "sts.aliyuncs.com"
STS_VERSION: Final = "2015-04-01"
BSS_VERSION: Final = "2017-12-14"
# Accounts of the Chinese and of the international site are billed at servers of their own.
BSS_HOSTS: Final = {"china": "business.aliyuncs.com", "international": "business.ap-southeast-1.aliyuncs.com"}
BILL_PAGE: Final = "300"
MAX_PAGES: Final = 200


class AliyunAccount:
    """The calls about the account itself. site: "china" or "international"."""

    def __init__(self, rpc: AliyunRpc, site: str) -> None:
        self._rpc = rpc
        self._host = BSS_HOSTS.get(site, BSS_HOSTS["china"])

    def identity(self) -> str:
        """Return whose key it is (an ARN); every valid key may ask."""
        return text(self._rpc.call(STS_HOST, STS_VERSION, "GetCallerIdentity", {}), "Arn")

    def balance(self) -> Money | None:
        """Return what is left to spend, in the account's own currency."""
        data = self._data(self._rpc.call(self._host, BSS_VERSION, "QueryAccountBalance", {}))
        return money(data.get("AvailableAmount"), text(data, "Currency") or "CNY")

    def bills(self, day: date) -> list[dict[str, Any]]:
        """Return what ECS was billed on one day (of UTC+8), all pages."""
        params = {
            "BillingCycle": day.strftime("%Y-%m"),
            "BillingDate": day.isoformat(),
            "Granularity": "DAILY",
            "ProductCode": "ecs",
            "MaxResults": BILL_PAGE,
        }
        found: list[dict[str, Any]] = []
        seen: set[str] = set()
        for _page in range(MAX_PAGES):
            data = self._data(self._rpc.call(self._host, BSS_VERSION, "DescribeInstanceBill", params))
            items = data.get("Items") or []
            if not isinstance(items, list):
                raise NotUnderstood("Alibaba Cloud's bill has no list of items.")
            found += [item for item in items if isinstance(item, dict)]
            token = text(data, "NextToken")
            if not token:
                return found
            if token in seen:
                break
            seen.add(token)
            params = {**params, "NextToken": token}
        raise NotUnderstood("The pages of Alibaba Cloud's bill have no end.")

    @staticmethod
    def _data(body: Mapping[str, Any]) -> Mapping[str, Any]:
        data = body.get("Data")
        if not isinstance(data, Mapping):
            raise NotUnderstood("Alibaba Cloud's answer about the account has no data.")
        return data
