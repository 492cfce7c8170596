"""What an engine is asked to be (EngineSpec) and what it takes to run it (Launch); every engine maps one to the other."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from django.utils.translation import gettext as _
from msgspec import Meta, Struct

from panel.core.errors import InvalidInput

Kind = Literal["vllm", "sglang", "tgi", "triton", "trtllm", "comfyui", "transformers", "llamacpp", "custom"]
Source = Literal["huggingface", "modelscope", "path"]
Runtime = Literal["container", "process"]
ReadyKind = Literal["chat_stream", "completion_stream", "http", "triton_infer"]
DrainHow = Literal["sigterm", "idle_then_sigterm", "queue_empty_then_sigterm"]
Value = bool | int | float | str

START_LIMIT_SECONDS: Final = 1800
DRAIN_SECONDS: Final = 300
GIB: Final = 1024**3

Name = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=1000)]
Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Port = Annotated[int, Meta(ge=1, le=65535)]

# A model's name goes into commands and addresses of hubs; a revision is a branch, tag or commit.
_MODEL: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?(:[A-Za-z0-9._-]{1,64})?"
)
_REVISION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
_SERVED: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}")
_IMAGE: Final = re.compile(r"[a-z0-9][A-Za-z0-9._:/@-]{0,254}")
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}")


class CustomCommand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How an engine that the panel does not know is run and asked.

    command: argv; `{port}`, `{host}`, `{model}` and `{gpu_count}` are filled in. ready_body: JSON object sent to ready_path.
    api_key_variable: in which it takes the bearer that it asks callers for, "" for one that asks for none.
    """

    command: Annotated[list[Text], Meta(max_length=200)] = []
    ready_kind: ReadyKind = "http"
    ready_path: Name = "/"
    ready_body: dict[str, Any] | None = None
    health_path: Name = ""
    metrics_path: Name | None = None
    api_key_variable: Variable | Literal[""] = ""


class EngineSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What should answer: an engine, a model, arguments. Immutable, JSON-ready, free of secrets.

    version: of the engine (an image tag without prefix), "" for none stated. model: id at the hub, or an absolute path on the
    host. served_name: what callers put into `model`, "" for the model's own. arguments: of the engine's table, typed.
    extra_arguments: as they are, screened. environment: plain values; secret_environment: variable → name of a secret, never a
    value. image: instead of the engine's usual one. start_limit_seconds: until the first answer.
    """

    kind: Kind
    model: Text = ""
    version: Name = ""
    source: Source = "huggingface"
    revision: Name = ""
    served_name: Name = ""
    arguments: dict[Name, Value] = {}
    extra_arguments: Annotated[list[Text], Meta(max_length=100)] = []
    environment: dict[Variable, Annotated[str, Meta(max_length=4000)]] = {}
    secret_environment: dict[Variable, Name] = {}
    image: Annotated[str, Meta(max_length=255)] = ""
    tensor_parallel_size: Annotated[int, Meta(ge=1, le=64)] = 1
    runtime: Runtime = "container"
    start_limit_seconds: Annotated[int, Meta(ge=30, le=86400)] = START_LIMIT_SECONDS
    drain_seconds: Annotated[int, Meta(ge=0, le=7200)] = DRAIN_SECONDS
    custom: CustomCommand | None = None

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "EngineSpec":
        """Read a spec as it is stored or sent. Raises InvalidInput that names the field."""
        try:
            return msgspec.convert(given, cls)
        except msgspec.ValidationError as error:
            field = re.search(r"field `([^`]+)`|`\$\.([A-Za-z_.]+)", str(error))
            raise InvalidInput(
                _("The engine's specification cannot be read: %(problem)s. Correct that field.") % {"problem": error},
                field=(field[1] or field[2]) if field else None,
            ) from error

    def to_json(self) -> dict[str, Any]:
        """Return the spec as JSON-ready values, defaults left out except the kind."""
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built

    def name_for_callers(self) -> str:
        """Return what callers put into `model`."""
        if self.served_name:
            return self.served_name
        if self.kind == "transformers":  # it knows a model by path or id and revision
            return f"{self.model}@{self.revision}" if self.revision and self.source != "path" else self.model
        return self.model.rstrip("/").rsplit("/", 1)[-1] if self.source == "path" else self.model


class ServerMirrors(Struct, frozen=True, kw_only=True):
    """How one server reaches models and images.

    hf_endpoint: instead of https://huggingface.co, "" for that. image_prefix: put before images ("m.daocloud.io" for all, or
    "m.daocloud.io/docker.io" for those of that registry). cache_folder: absolute path on the host that outlives containers, ""
    for none.
    """

    hf_endpoint: str = ""
    image_prefix: str = ""
    cache_folder: str = ""


class ReadyCheck(Struct, frozen=True, kw_only=True):
    """The real request whose answer makes a replica ready. body: JSON for a POST, None for a GET.

    A stream counts at its first event with text; the others at a 2xx.
    """

    kind: ReadyKind
    path: str
    body: dict[str, Any] | None = None

    @property
    def method(self) -> Literal["GET", "POST"]:
        """Return the HTTP method."""
        return "GET" if self.body is None else "POST"


class Drain(Struct, frozen=True, kw_only=True):
    """How an engine ends without cutting a request, once no new ones come.

    how: `sigterm` (it finishes what runs by itself), `idle_then_sigterm` (SIGTERM cuts: wait until nothing runs first),
    `queue_empty_then_sigterm` (wait until queue_path lists no work). seconds: at most this long.
    """

    how: DrainHow
    seconds: int
    queue_path: str = ""


class Mount(Struct, frozen=True, kw_only=True):
    """A folder of the host that the container sees."""

    source: str
    target: str
    is_read_only: bool = False


class Launch(Struct, frozen=True, kw_only=True):
    """All that a runtime needs. command: the whole argv, for containers in place of their entry point.

    image: "" for a process. secret_environment: variable → name of a secret. api_key_variable: the variable in which this engine
    takes the bearer that it asks callers for, None where it takes none. metrics_port: None when it is `port`. slots: requests
    worked on at once, None when unknown. shm_bytes: of /dev/shm. warnings: sentences for people.
    """

    command: list[str]
    image: str
    environment: dict[str, str]
    secret_environment: dict[str, str]
    port: int
    health_path: str
    ready: ReadyCheck
    metrics_path: str | None
    drain: Drain
    mounts: list[Mount]
    shm_bytes: int | None
    start_limit_seconds: int
    warnings: list[str]
    metrics_port: int | None = None
    api_key_variable: str | None = None
    slots: int | None = None


class Place(Struct, frozen=True, kw_only=True):
    """Where an engine is to run: the port and address it listens on, its GPUs, how the server reaches models, how it runs."""

    port: Port
    gpu_count: int
    host: str = "127.0.0.1"
    mirrors: ServerMirrors = ServerMirrors()
    runtime: Runtime = "container"


def refuse(message: str, field: str) -> InvalidInput:
    """Return the error for a field of the spec."""
    return InvalidInput(message, field=field)


def check_names(spec: EngineSpec) -> None:
    """Check model, revision, served name, image and version. Raises InvalidInput."""
    if spec.source == "path":
        check_path(spec.model, "model")
    elif spec.kind != "custom" or spec.model:
        _match(_MODEL, spec.model, "model", _("Write it as the hub does, such as Qwen/Qwen3-8B."))
    for pattern, value, field, hint in (
        (_REVISION, spec.revision, "revision", _("Give a branch, a tag or a commit.")),
        (_SERVED, spec.served_name, "served_name", _("Use letters, digits and . _ : / @ -.")),
        (_IMAGE, spec.image, "image", _("Give it as registry/name:tag.")),
        (_VERSION, spec.version, "version", _("Give it as the image's tag names it, such as 0.18.0.")),
    ):
        if value:
            _match(pattern, value, field, hint)


def check_path(path: str, field: str) -> None:
    """Check that a path on the host is absolute and has no way up. Raises InvalidInput."""
    parts = path.split("/")
    if not path.startswith("/") or ".." in parts or not all(part.isprintable() for part in parts) or path == "/":
        raise refuse(_("%(field)s must be an absolute path on the host without “..”.") % {"field": field}, field)


def _match(pattern: re.Pattern[str], value: str, field: str, hint: str) -> None:
    if not pattern.fullmatch(value) or ".." in value:
        raise refuse(
            _("“%(value)s” cannot be the %(field)s. %(hint)s") % {"value": value[:100], "field": field, "hint": hint},
            field,
        )
