"""The installer as a panel serves it, and the one line that runs it on a machine."""

import shlex
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _

from fleet.agent import __version__
from fleet.agent_package.wheel import ServedFile, agent_requirements, agent_wheel, gateway_requirements, served
from panel.core.errors import InvalidInput

TEMPLATE: Final = Path(__file__).resolve().parent / "install.sh"
NAME: Final = "install.sh"
MINIMUM_PYTHON_MINOR: Final = 10
MAX_URL: Final = 500


def panel_url(request: HttpRequest | None = None) -> str:
    """Return the panel's address for machines: the configured one, else the one by which this caller reached it."""
    if settings.IS_PUBLIC_URL_GIVEN or request is None:
        return str(settings.PUBLIC_URL).rstrip("/")
    return request.build_absolute_uri("/").rstrip("/")


def wheel() -> ServedFile:
    """Return the agent's wheel."""
    return agent_wheel(settings.AGENT_PACKAGE_DIR)


def installer(*, url: str) -> ServedFile:
    """Return the installer with the panel's address and the checksums of what it fetches filled in."""
    package = wheel()
    return _render(url, package.name, package.sha256, agent_requirements().sha256, gateway_requirements().sha256)


@lru_cache(maxsize=16)
def _render(
    url: str, wheel_name: str, wheel_sha256: str, requirements_sha256: str, gateway_requirements_sha256: str
) -> ServedFile:
    values = {
        "PANEL_URL": url,
        "VERSION": __version__,
        "WHEEL": wheel_name,
        "WHEEL_SHA256": wheel_sha256,
        "REQUIREMENTS_SHA256": requirements_sha256,
        "GATEWAY_REQUIREMENTS_SHA256": gateway_requirements_sha256,
        "MINIMUM_PYTHON_MINOR": str(MINIMUM_PYTHON_MINOR),
    }
    text = TEMPLATE.read_text()
    for name, value in values.items():
        text = text.replace(f"@@{name}@@", shlex.quote(value))
    return served(NAME, text.encode())


def mirror_url(mirror: str) -> str:
    """Return the index address of a mirror, by its name in FLEETDECK_PACKAGE_MIRRORS or as typed. Raises InvalidInput."""
    address = str(settings.PACKAGE_MIRRORS.get(mirror, mirror)).strip()
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None
    except ValueError:
        is_usable = False
    if not is_usable or len(address) > MAX_URL or not address.isprintable() or " " in address:
        raise InvalidInput(
            _("A mirror is the http(s) address of a package index, without a password in it."), field="mirror"
        )
    return address


def _run_line(*, url: str, variables: str = "", options: str = "") -> str:
    """Return one line for a shell that fetches the installer, checks its SHA-256 and runs it; curl, wget or Python do."""
    script = installer(url=url)
    address = shlex.quote(f"{url}/agent/{NAME}")
    fetch = (
        f'if command -v curl >/dev/null; then curl -fsSL -o "$f" {address}; '
        f'elif command -v wget >/dev/null; then wget -qO "$f" {address}; '
        "else python3 -c 'import sys, urllib.request as r; r.urlretrieve(*sys.argv[1:])' "
        f'{address} "$f"; fi'
    )
    check = f'echo "{script.sha256}  $f" | sha256sum -c - >/dev/null'
    return f"""(f=$(mktemp); trap 'rm -f "$f"' EXIT; {{ {fetch}; }} && {check} && {variables}sh "$f"{options})"""


def join_command(
    *, url: str, token: str, mirror: str = "", is_detached: bool = False, gateway_port: int | None = None
) -> str:
    """Return one line for a shell: fetch the installer from the panel, check its SHA-256, run it with the token.

    Works with curl, wget or Python alone.
    mirror: a name of FLEETDECK_PACKAGE_MIRRORS or an index address. Raises InvalidInput for one that is neither.
    gateway_port: that the machine lets callers of endpoints in, and where.
    is_detached: run the agent in the background even where systemd runs (containers that only look like machines).
    """
    variables = f"FLEETDECK_JOIN_TOKEN={shlex.quote(token)}"
    index = mirror_url(mirror)
    if index:
        variables += f" FLEETDECK_MIRROR={shlex.quote(index)}"
    options = " --detached" if is_detached else ""
    if gateway_port is not None:
        options += f" --role gateway --gateway-port {gateway_port}"
    return _run_line(url=url, variables=f"{variables} ", options=options)


def uninstall_command(*, url: str) -> str:
    """Return one line for a shell that takes the agent off a machine and says goodbye to the panel."""
    return _run_line(url=url, options=" --uninstall")
