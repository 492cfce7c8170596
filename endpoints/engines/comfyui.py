"""ComfyUI: pictures and video by workflows; `python main.py` in its folder."""

from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from endpoints.engines import parts
from endpoints.engines.arguments import Argument, checked, flags, screened
from endpoints.engines.base import GIB, Drain, EngineSpec, Launch, Mount, Place, ReadyCheck, refuse

ARGUMENTS: Final = (
    Argument(
        name="vram_mode",
        flag="",
        type="string",
        choices=("gpu-only", "highvram", "normalvram", "lowvram", "novram"),
        help=_("How much stays on the card between steps: gpu-only is fastest, novram fits anything and is slowest."),
    ),
    Argument(
        name="reserve_vram",
        flag="--reserve-vram",
        type="number",
        minimum=0,
        maximum=256,
        help=_("Memory left to others on the card, in GB. More avoids running out and leaves less for models."),
    ),
    Argument(
        name="cache_lru",
        flag="--cache-lru",
        type="integer",
        minimum=0,
        maximum=10_000,
        help=_("Results of nodes that are kept. More save work for similar workflows and take memory."),
    ),
    Argument(
        name="disable_all_custom_nodes",
        flag="--disable-all-custom-nodes",
        type="boolean",
        help=_("Loads no extensions. Safer and quicker to start; workflows that need them fail."),
    ),
    Argument(
        name="main_file",
        flag="",
        type="string",
        default="main.py",
        help=_("Path of ComfyUI's main.py in the image or on the server."),
    ),
)
_OWN: Final = (
    "--listen",
    "--port",
    "--auto-launch",
    "--disable-auto-launch",
    "--base-directory",
    "--gpu-only",
    "--highvram",
    "--normalvram",
    "--lowvram",
    "--novram",
    *(argument.flag for argument in ARGUMENTS if argument.flag),
)
_REFUSED: Final = {
    "--enable-cors-header": _("it lets any web page use the engine; the gateway answers browsers."),
    "--cuda-device": _("the panel gives the replica its card."),
}


def launch(spec: EngineSpec, place: Place) -> Launch:
    """Return how ComfyUI is run. model: a folder with models, inputs and outputs (--base-directory). Raises InvalidInput."""
    if spec.source != "path":
        raise refuse(
            gettext("ComfyUI takes models from a folder: give the path of its base folder on the host."), "source"
        )
    given = dict(spec.arguments)
    main = str(given.pop("main_file", "main.py"))
    if main.startswith("-") or not main.endswith(".py") or not main.isprintable():
        raise refuse(gettext("main_file must be the path of ComfyUI's main.py."), "main_file")
    values = checked(ARGUMENTS, given)
    extra = screened(spec.extra_arguments, _OWN, _REFUSED)
    mounts, _told = parts.model_mounts(spec, place, {})
    command = ["python3", main, "--listen", place.host, "--port", str(place.port), "--disable-auto-launch"]
    command += ["--base-directory", spec.model]
    command += [f"--{values['vram_mode']}"] if "vram_mode" in values else []
    warnings = parts.check_gpus(spec, place)
    if place.gpu_count > 1:
        warnings = [gettext("ComfyUI works on one card: give each replica one GPU.")]
    return Launch(
        command=[*command, *flags(ARGUMENTS, values, given), *extra],
        image=parts.image_of(spec, place, None),
        environment=dict(spec.environment),
        secret_environment=spec.secret_environment,
        port=place.port,
        health_path="/system_stats",
        ready=ReadyCheck(kind="http", path="/system_stats"),
        metrics_path=None,
        drain=Drain(how="queue_empty_then_sigterm", seconds=spec.drain_seconds, queue_path="/queue"),
        # Outputs are written beside the models.
        mounts=[_writable(mount) for mount in mounts],
        shm_bytes=GIB if place.runtime == "container" else None,
        start_limit_seconds=spec.start_limit_seconds,
        warnings=warnings,
        slots=1,
    )


def _writable(mount: Mount) -> Mount:
    return Mount(source=mount.source, target=mount.target)
