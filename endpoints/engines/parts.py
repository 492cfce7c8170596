"""What several engines share: model hubs and their mirrors, images, caches, ready checks."""

import re
from collections.abc import Mapping
from typing import Final

from django.utils.translation import gettext as _

from endpoints.engines.base import EngineSpec, Mount, Place, ReadyCheck, refuse

_HUB_CACHE: Final = "/root/.cache/huggingface"
_MODELSCOPE_CACHE: Final = "/root/.cache/modelscope"
_SET_BY_PANEL: Final = frozenset({"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"})
_SECRET: Final = re.compile(r"(TOKEN|PASSWORD|PASSWD|SECRET|API_?KEY|ACCESS_KEY|CREDENTIAL)S?$", re.IGNORECASE)


def chat_check(model: str) -> ReadyCheck:
    """Return a chat of one token, streamed: it goes the way of a caller's request."""
    messages = [{"role": "user", "content": "Hi"}]
    body = {"model": model, "messages": messages, "max_tokens": 1, "stream": True, "temperature": 0}
    return ReadyCheck(kind="chat_stream", path="/v1/chat/completions", body=body)


def completion_check(model: str) -> ReadyCheck:
    """Return a completion of one token, streamed, for models without a chat template."""
    body = {"model": model, "prompt": "Hi", "max_tokens": 1, "stream": True, "temperature": 0}
    return ReadyCheck(kind="completion_stream", path="/v1/completions", body=body)


def text_check(spec: EngineSpec, values: Mapping[str, object]) -> ReadyCheck:
    """Return the check that the argument `ready_with` asks for."""
    name = spec.name_for_callers()
    return completion_check(name) if values.get("ready_with") == "completion" else chat_check(name)


def hub_environment(spec: EngineSpec, place: Place, modelscope: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which an engine finds its model. Raises InvalidInput.

    modelscope: what switches this engine over to ModelScope, empty where it cannot. A model on a path asks no hub at all, so that
    a hidden call fails at once instead of after a minute.
    """
    if spec.source == "path":
        return {"HF_HUB_OFFLINE": "1"}
    mirror = {"HF_ENDPOINT": place.mirrors.hf_endpoint} if place.mirrors.hf_endpoint else {}
    if spec.source == "huggingface":
        return mirror
    if not modelscope:
        raise refuse(
            _("This engine cannot load from ModelScope itself. Download the model to the server and give its path."),
            "source",
        )
    # Some engines ask the Hugging Face hub in passing even so: they get the mirror too.
    return {**mirror, **modelscope}


def model_mounts(spec: EngineSpec, place: Place, caches: Mapping[str, str]) -> tuple[list[Mount], list[str]]:
    """Return the folders that a container gets for models and caches, and warnings. caches: folder name → target."""
    if place.runtime == "process":
        return [], []
    mounts = [Mount(source=spec.model, target=spec.model, is_read_only=True)] if spec.source == "path" else []
    folder = place.mirrors.cache_folder.rstrip("/")
    hubs = {"huggingface": _HUB_CACHE} if spec.source == "huggingface" else {}
    hubs |= {"modelscope": _MODELSCOPE_CACHE} if spec.source == "modelscope" else {}
    if not folder:
        told = (
            [_("This server has no cache folder: the model is downloaded again for every new container.")]
            if hubs
            else []
        )
        return mounts, told
    wanted = {**hubs, **caches}
    return mounts + [Mount(source=f"{folder}/{name}", target=target) for name, target in wanted.items()], []


def image_of(spec: EngineSpec, place: Place, usual: str | None) -> str:
    """Return the image with the server's prefix; an image given in the spec stays as it is. Raises InvalidInput.

    usual: the engine's own image with its tag, None where it has none.
    """
    if place.runtime == "process":
        return ""
    if spec.image:
        return spec.image
    if usual is None:
        raise refuse(_("There is no usual image for this engine: give one, with its tag."), "image")
    prefix = place.mirrors.image_prefix.strip().rstrip("/")
    if not prefix:
        return usual
    registry, name = _registry_of(usual)
    head, _slash, last = prefix.rpartition("/")
    if head and "." in last:  # the prefix names the registry that it mirrors
        return f"{prefix}/{name}" if last == registry else usual
    return f"{prefix}/{registry}/{name}"


def tag_of(spec: EngineSpec, *, form: str = "{}", default: str | None = None) -> str:
    """Return the image's tag for the engine's version, or the default. Raises InvalidInput when neither is there."""
    if spec.version:
        return form.format(spec.version.removeprefix("v"))
    if default is None:
        raise refuse(_("This engine's images are named by version: give the engine's version, or an image."), "version")
    return default


def side_port(port: int, number: int = 0) -> int:
    """Return another port for an engine that needs more than one (number: 0 or 1): in another block of ten thousand.

    Ports of replicas on one machine lie in one block, side by side, so the next port is likely to be another replica's.
    """
    blocks = [block for block in (1, 2, 3) if block != port // 10_000]
    return blocks[number] * 10_000 + port % 10_000


def is_older(version: str, than: tuple[int, ...]) -> bool:
    """Say whether a stated version is older; one that is not stated, or not a number, is taken for new."""
    numbers = numbers_of(version)
    return bool(numbers) and numbers < than


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, () when there are none: v0.10.1.post2 → (0, 10, 1)."""
    numbers: list[int] = []
    for part in version.removeprefix("v").split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


def check_environment(spec: EngineSpec) -> None:
    """Check the variables: no secret as a plain value, none that the panel sets. Raises InvalidInput."""
    for name in (*spec.environment, *spec.secret_environment):
        if name in _SET_BY_PANEL:
            raise refuse(
                _("%(name)s is set by the panel: it gives a replica its GPUs.") % {"name": name}, "environment"
            )
    for name in spec.environment:
        if _SECRET.search(name):
            raise refuse(
                _(
                    "%(name)s looks like a secret: store it as one and refer to it by name, so that no page or log shows it."
                )
                % {"name": name},
                "environment",
            )
    both = set(spec.environment) & set(spec.secret_environment)
    if both:
        raise refuse(
            _("%(name)s is both a plain variable and a secret: keep one.") % {"name": min(both)}, "environment"
        )


def check_gpus(spec: EngineSpec, place: Place, *, times: int = 1) -> list[str]:
    """Check the GPUs that parallelism asks for (tensor parallel × times), and return warnings. Raises InvalidInput."""
    used = spec.tensor_parallel_size * times
    facts = {"used": used, "count": place.gpu_count}
    if used > max(place.gpu_count, 1):
        raise refuse(
            _("The parallelism asks for %(used)s GPUs; the replica gets %(count)s. Lower it or give more GPUs.")
            % facts,
            "tensor_parallel_size",
        )
    if used < place.gpu_count:
        return [_("The replica gets %(count)s GPUs and uses %(used)s: raise the tensor-parallel size.") % facts]
    return []


def _registry_of(image: str) -> tuple[str, str]:
    first, slash, rest = image.partition("/")
    return (first, rest) if slash and ("." in first or ":" in first) else ("docker.io", image)
