"""Every engine that the panel knows, by kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from msgspec.structs import replace

from endpoints.engines import (
    arguments,
    comfyui,
    custom,
    llamacpp,
    parts,
    sglang,
    tgi,
    transformers,
    triton,
    trtllm,
    vllm,
)
from endpoints.engines.arguments import Argument
from endpoints.engines.base import EngineSpec, Launch, Place, Source, check_names, refuse


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """One engine: its name for people, what it is good for, its arguments, and the function from spec to launch."""

    label: str
    purpose: Promise
    arguments: Sequence[Argument]
    launch: Callable[[EngineSpec, Place], Launch]
    sources: Sequence[Source] = ("huggingface", "modelscope", "path")


_HUB: Final[Sequence[Source]] = ("huggingface", "path")
ENGINES: Final[Mapping[str, Engine]] = {
    "vllm": Engine(
        label="vLLM",
        purpose=_("Language models for many callers at once; the usual choice."),
        arguments=vllm.ARGUMENTS,
        launch=vllm.launch,
    ),
    "sglang": Engine(
        label="SGLang",
        purpose=_("Language models, strong where prompts begin alike and with large mixtures of experts."),
        arguments=sglang.ARGUMENTS,
        launch=sglang.launch,
    ),
    "tgi": Engine(
        label="TGI",
        purpose=_("Language models; in maintenance, for installations that have it."),
        arguments=tgi.ARGUMENTS,
        launch=tgi.launch,
        sources=_HUB,
    ),
    "triton": Engine(
        label="Triton",
        purpose=_("Any model in a Triton repository: vision, speech, ranking, with dynamic batching."),
        arguments=triton.ARGUMENTS,
        launch=triton.launch,
        sources=("path",),
    ),
    "trtllm": Engine(
        label="TensorRT-LLM",
        purpose=_("Language models tuned for NVIDIA cards; fastest where the model is supported."),
        arguments=trtllm.ARGUMENTS,
        launch=trtllm.launch,
        sources=_HUB,
    ),
    "comfyui": Engine(
        label="ComfyUI",
        purpose=_("Pictures and video by workflows, one at a time."),
        arguments=comfyui.ARGUMENTS,
        launch=comfyui.launch,
        sources=("path",),
    ),
    "transformers": Engine(
        label="transformers serve",
        purpose=_("Any model of the Transformers library, slowly; to try what others do not know yet."),
        arguments=transformers.ARGUMENTS,
        launch=transformers.launch,
        sources=_HUB,
    ),
    "llamacpp": Engine(
        label="llama.cpp",
        purpose=_("GGUF models on small cards and CPUs, for a few callers."),
        arguments=llamacpp.ARGUMENTS,
        launch=llamacpp.launch,
    ),
    "custom": Engine(
        label="Custom",
        purpose=_("A command or image of your own that answers HTTP."),
        arguments=custom.ARGUMENTS,
        launch=custom.launch,
    ),
}


def engine(kind: str) -> Engine:
    """Return an engine by its kind. Raises InvalidInput that names those there are."""
    known = ENGINES.get(kind)
    if known is None:
        facts = {"kind": kind, "known": ", ".join(ENGINES)}
        raise refuse(gettext("There is no engine “%(kind)s”; there are: %(known)s.") % facts, "kind")
    return known


def launch(spec: EngineSpec, place: Place) -> Launch:
    """Return all that it takes to run a spec in a place. Pure. Raises InvalidInput that names the field and the next step."""
    chosen = engine(spec.kind)
    if spec.source not in chosen.sources:
        facts = {"engine": chosen.label, "sources": ", ".join(chosen.sources)}
        raise refuse(gettext("%(engine)s cannot load from there; it takes: %(sources)s.") % facts, "source")
    check_names(spec)
    parts.check_environment(spec)
    made = chosen.launch(spec, place)
    return made if made.api_key_variable is not None else replace(made, warnings=[*made.warnings, _open(chosen)])


def _open(chosen: Engine) -> str:
    """Return what is to be said of an engine that asks nobody for a key."""
    return gettext(
        "%(engine)s asks callers for no key: whoever reaches a replica's port gets past the gateway. With the only gateway on "
        "the same machine replicas listen on 127.0.0.1; else let a firewall leave their ports to gateways."
    ) % {"engine": chosen.label}


def argument_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of an engine's arguments, for forms, with sentences in the active language."""
    return arguments.schema(engine(kind).arguments)
