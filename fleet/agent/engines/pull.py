"""Fetching an image, with how far it is: an error in the stream is one, whatever the status of the answer was."""

import json
import re
from typing import Any, Final

from fleet.agent.engines.contract import StartError, Tell

# No byte for so long: the registry or the way to it is stuck.
SILENT_SECONDS: Final = 300.0
CONNECT_SECONDS: Final = 10.0
DOWNLOAD_SHARE: Final = 0.8
_FOR_EVER: Final = re.compile(
    r"manifest unknown|not found|no such|denied|unauthorized|invalid reference|requires? authentication|no matching manifest",
    re.IGNORECASE,
)


def image_id(client: Any, image: str) -> str | None:
    """Return the id of an image that is here, None when it is not. Raises StartError."""
    from docker.errors import DockerException, ImageNotFound

    try:
        return str(client.inspect_image(image)["Id"])
    except ImageNotFound:
        return None
    except (DockerException, OSError) as error:
        raise StartError("pull_failed", f"The image {image} cannot be looked up: {str(error)[:300]}") from error


def pull(client: Any, image: str, tell: Tell) -> None:
    """Fetch an image. tell: percent, now and then; what it raises ends the pull. Raises StartError."""
    from docker.utils import parse_repository_tag

    name, tag = parse_repository_tag(image)
    try:
        response = client.post(
            f"{client.base_url}/v{client.api_version}/images/create",
            params={"fromImage": name, "tag": tag or "latest"},
            stream=True,
            timeout=(CONNECT_SECONDS, SILENT_SECONDS),
        )
        if response.status_code != 200:
            raise _failure(image, _message_of(response.text))
        _follow(response, image, tell)
    except OSError as error:  # what requests raises is one
        raise StartError("pull_failed", f"The image {image} could not be fetched: {str(error)[:300]}") from error


def _follow(response: Any, image: str, tell: Tell) -> None:
    progress = Progress()
    tell(0)
    with response:
        for line in response.iter_lines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if not isinstance(event, dict):
                continue
            if event.get("error") or event.get("errorDetail"):
                raise _failure(image, str(event.get("error") or event["errorDetail"].get("message", "")))
            tell(progress.percent_after(event))


def _failure(image: str, said: str) -> StartError:
    sentence = f"The image {image} could not be fetched: {said[:300]}"
    return StartError("pull_failed", sentence, is_permanent=_FOR_EVER.search(said) is not None)


def _message_of(body: str) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body


class Progress:
    """From the layers' events to one percent that never falls."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}
        self._sizes: dict[str, float] = {}
        self._percent = 0

    def percent_after(self, event: dict[str, Any]) -> int:
        """Take one event; returns the percent of the whole. 100 is left to the end."""
        layer, status = str(event.get("id", "")), str(event.get("status", ""))
        share = self._share_of(status, event.get("progressDetail") or {}, layer)
        if layer and share is not None:
            self._shares[layer] = max(share, self._shares.get(layer, 0.0))
            mean = sum(self._sizes.values()) / len(self._sizes) if self._sizes else 1.0
            weights = {name: self._sizes.get(name, mean) for name in self._shares}
            total = sum(weights.values()) or 1.0
            done = sum(self._shares[name] * weight for name, weight in weights.items())
            self._percent = max(self._percent, min(int(done * 100 / total), 99))
        return self._percent

    def _share_of(self, status: str, detail: dict[str, Any], layer: str) -> float | None:
        """Return how much of a layer is done, None for events that tell nothing of it."""
        current, total = detail.get("current"), detail.get("total")
        ratio = min(current / total, 1.0) if current is not None and total else 0.0
        if status == "Downloading" and total:
            self._sizes[layer] = float(total)
        return {
            "Pulling fs layer": 0.0,
            "Waiting": 0.0,
            "Downloading": ratio * DOWNLOAD_SHARE,
            "Verifying Checksum": DOWNLOAD_SHARE,
            "Download complete": DOWNLOAD_SHARE,
            "Extracting": DOWNLOAD_SHARE + ratio * (1.0 - DOWNLOAD_SHARE),
            "Pull complete": 1.0,
            "Already exists": 1.0,
        }.get(status)
