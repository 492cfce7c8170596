"""An engine that the panel does not know: its command and checks come with the spec."""

from typing import Final

from django.utils.translation import gettext

from endpoints.engines import parts
from endpoints.engines.base import CustomCommand, Drain, EngineSpec, Launch, Place, ReadyCheck, refuse

ARGUMENTS: Final = ()


def launch(spec: EngineSpec, place: Place) -> Launch:
    """Return how it is run: its own command with {port}, {host}, {model}, {gpu_count} filled in. Raises InvalidInput."""
    custom = spec.custom or CustomCommand()
    if not custom.command and (not spec.image or place.runtime == "process"):
        raise refuse(
            gettext("Give the command that starts the engine, with {port} where its port belongs."), "custom.command"
        )
    if spec.arguments:
        raise refuse(
            gettext("An engine of your own has no table of arguments: write them into its command."), "arguments"
        )
    command = [_filled(word, spec, place) for word in [*custom.command, *spec.extra_arguments]]
    if custom.command and not any("{port}" in word for word in custom.command) and "PORT" not in spec.environment:
        raise refuse(gettext("The command names no {port}: the panel could not reach the engine."), "custom.command")
    for path, field in ((custom.ready_path, "custom.ready_path"), (custom.health_path, "custom.health_path")):
        if path and not path.startswith("/"):
            raise refuse(gettext("A path begins with “/”."), field)
    mounts, told = parts.model_mounts(spec, place, {})
    warnings = list(told) if spec.model else []
    if custom.ready_body is None:
        warnings.append(
            gettext("Ready is only that a page answers: give a request whose answer shows that the model works.")
        )
    return Launch(
        command=command,
        image=parts.image_of(spec, place, None),
        environment={key: _filled(value, spec, place) for key, value in spec.environment.items()},
        secret_environment=spec.secret_environment,
        port=place.port,
        health_path=custom.health_path,
        ready=ReadyCheck(kind=custom.ready_kind, path=custom.ready_path, body=custom.ready_body),
        metrics_path=custom.metrics_path,
        drain=Drain(how="sigterm", seconds=spec.drain_seconds),
        mounts=mounts,
        shm_bytes=None,
        start_limit_seconds=spec.start_limit_seconds,
        warnings=warnings,
        api_key_variable=custom.api_key_variable or None,
    )


def _filled(word: str, spec: EngineSpec, place: Place) -> str:
    """Fill in the four names; every other brace stays as it is, since commands hold JSON too."""
    facts = {"port": str(place.port), "host": place.host, "model": spec.model, "gpu_count": str(place.gpu_count)}
    for name, value in facts.items():
        word = word.replace("{" + name + "}", value)
    return word
