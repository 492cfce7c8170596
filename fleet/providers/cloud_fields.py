"""What the big clouds ask for alike: regions, instance types, disk, bandwidth, renewal."""

from typing import Final

from django.utils.translation import gettext_lazy as _

from fleet.providers.base import Field


def regions_field(default: str) -> Field:
    """Return the option that lists the regions in use; default: a region's id."""
    return Field(
        name="regions",
        label=_("Regions"),
        default=default,
        help=_("Ids of all regions in use, separated by commas; machines elsewhere are not seen."),
    )


IMAGE: Final = Field(name="image", label=_("Image ID"), help=_("One with the NVIDIA driver; it differs by region."))
ROOT_DISK: Final = Field(name="disk_gb", label=_("System disk in GB"), default="100", max_length=5)
BANDWIDTH: Final = Field(
    name="bandwidth_mbps",
    label=_("Public bandwidth in Mbit/s"),
    default="20",
    max_length=4,
    help=_("Paid by traffic. With 0 there is no public address, and the way out must come from the network."),
)
AUTO_RENEW: Final = Field(
    name="auto_renew", label=_("Renew by itself"), default="no", choices={"no": _("No"), "yes": _("Yes")}
)
