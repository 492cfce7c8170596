"""AutoDL's instances, offers and images as the panel's: states, money in thousandths of a yuan, the start command."""

import base64
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fleet.providers.autodl.catalogue import model_of
from fleet.providers.base import Billing, Machine, MachineStatus, OfferFound, Snapshot, status_of
from fleet.providers.reading import money, text, time, whole
from panel.core.money import Money

CURRENCY: Final = "CNY"
MILLI: Final = 1000
_S = MachineStatus
STATUS: Final[Mapping[str, MachineStatus]] = {
    "creating": _S.PROVISIONING,
    "created": _S.PROVISIONING,
    "starting": _S.PROVISIONING,
    "oss_merged": _S.PROVISIONING,
    "running": _S.RUNNING,
    "shutting_down": _S.STOPPING,
    "shutdown": _S.STOPPED,
    "failed": _S.FAILED,
    "releasing": _S.TERMINATING,
    "released": _S.GONE,
}
# Only `payg` can be ordered by API; the other words are of machines that were taken in the console.
BILLINGS: Final = {
    "payg": Billing.HOURLY,
    "daily": Billing.DAILY,
    "weekly": Billing.WEEKLY,
    "monthly": Billing.MONTHLY,
    "yearly": Billing.YEARLY,
}


def machine_of(entry: Mapping[str, Any], snapshot: Mapping[str, Any], specs: Mapping[str, str]) -> Machine:
    """Return a machine from its entry in the list and, of a running one, from its snapshot ({} for none).

    specs: spec id → model.
    """
    spec, alias = text(entry, "gpu_spec_uuid"), text(snapshot, "snapshot_gpu_alias_name")
    model = model_of(spec, alias, specs)
    count = whole(entry.get("req_gpu_amount"))
    charge_type = text(entry, "charge_type")
    status = status_of(text(entry, "status"), STATUS)
    payg_price = money(snapshot.get("payg_price"), CURRENCY, divisor=MILLI)
    usage = snapshot.get("usage_info")
    return Machine(
        external_id=text(entry, "uuid"),
        name=text(entry, "name"),
        status=status,
        raw_status=text(entry, "status"),
        gpu_model=model.name if model else "",
        raw_gpu=spec or alias,
        gpu_count=count,
        gpu_memory_bytes=model.memory_bytes if model else None,
        memory_bytes=whole(usage.get("mem_limit")) or None if isinstance(usage, Mapping) else None,
        region=text(entry, "region_sign") or text(entry, "region_name"),
        billing=BILLINGS.get(charge_type, Billing.HOURLY),
        price_per_hour=_price(payg_price, entry),
        address=text(snapshot, "proxy_host"),
        ssh_port=whole(snapshot.get("ssh_port")),
        created_at=_time(entry.get("created_at")),
        renews_at=_time(entry.get("expired_at")) if charge_type != "payg" else None,
        is_stop_saving=True if status == _S.STOPPED and charge_type == "payg" else None,
        details={
            "charge_type": charge_type,
            "start_mode": text(entry, "start_mode"),
            "region_name": text(entry, "region_name"),
            "payg_price": str(payg_price) if payg_price is not None else "",
        },
    )


def _price(payg_price: Money | None, entry: Mapping[str, Any]) -> Money | None:
    """Return the machine's price where the vendor's figure is certainly that.

    It is not for several cards, where nobody says whether it is that of one, nor for a machine that was started in the
    console without its cards, which costs a fraction of it.
    """
    is_whole = whole(entry.get("req_gpu_amount")) == 1 and text(entry, "start_mode") in {"", "gpu"}
    if payg_price is None or not payg_price.amount or text(entry, "charge_type") != "payg" or not is_whole:
        return None
    return payg_price


def offer_of(spec: str, count: int, specs: Mapping[str, str], price: Money | None) -> OfferFound:
    """Return the offer of so many cards of a spec."""
    model = model_of(spec, "", specs)
    return OfferFound(
        key=f"{spec}/{count}",
        gpu_model=model.name if model else "",
        raw_gpu=spec,
        gpu_count=count,
        gpu_memory_bytes=model.memory_bytes if model else None,
        price_per_hour=price,
        details={"gpu_spec_uuid": spec},
    )


def image_of(image: Mapping[str, Any]) -> Snapshot:
    """Return an image that the account has saved."""
    status = text(image, "status")
    return Snapshot(
        external_id=text(image, "image_uuid"),
        name=text(image, "name") or text(image, "image_name"),
        status=status,
        is_ready=status == "finished",
        created_at=_time(image.get("create_at")) or _time(image.get("created_at")),
    )


def _time(value: Any) -> datetime | None:
    """Return a time; the vendor also writes it as {Time, Valid}, and the year 1 for none."""
    if isinstance(value, Mapping):
        value = value.get("Time") if value.get("Valid") is True else None
    found = time(value)
    return found if found is not None and found.year > 1970 else None


def start_command(script: str, name: str) -> str:
    """Return the command that runs the script at the first start only; AutoDL runs it at every start.

    The mark is of this order's name: a machine that is made from another one's image runs its own script again.
    """
    mark = "/root/.fleetdeck-" + re.sub(r"[^A-Za-z0-9._-]", "-", name)
    encoded = base64.b64encode(script.encode()).decode()
    return f"bash -c '[ -e {mark} ] || {{ echo {encoded} | base64 -d | bash && touch {mark}; }}'"
