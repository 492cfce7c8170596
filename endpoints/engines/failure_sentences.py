"""What to say of each class of failed start, and what to do about it."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

SENTENCES: Final[Mapping[str, Promise]] = {
    "driver_mismatch": _("The NVIDIA driver was updated and the old one still runs."),
    "driver_too_old": _("The server's NVIDIA driver is too old for this engine."),
    "no_gpu": _("The engine sees no GPU."),
    "unknown_argument": _("This engine version does not know the argument %(flag)s."),
    "port_in_use": _("Its port is taken by another program."),
    "disk_full": _("The disk is full."),
    "program_missing": _("The engine's program is not installed there."),
    "remote_code": _("The model comes with Python code of its own, which the engine does not run unless told to."),
    "model_refused": _("The model hub refuses access to this model."),
    "hub_unreachable": _("The model hub cannot be reached: %(endpoint)s was tried."),
    "model_missing": _("There is no such model, revision or file."),
    "model_unknown": _("This engine version does not know the model's architecture."),
    "heads_not_divisible": _("The model's attention heads cannot be divided among so many GPUs."),
    "precision_unsupported": _("The card cannot compute in this precision."),
    "context": _("The context does not fit: the KV cache holds %(fits)s tokens."),
    "context_hopeless": _("The context does not fit: the KV cache holds %(fits)s tokens, too few to be useful."),
    "no_cache_memory": _("After loading the model nothing is left for the KV cache."),
    "memory_taken": _("Other programs hold the card's memory."),
    "cuda_memory": _("The card ran out of memory."),
    "cuda_memory_alone": _("The card ran out of memory with one request at a time."),
    "shared_memory": _("The container's shared memory is too small."),
    "host_memory": _("The machine's own memory ran out."),
    "cards_cannot_talk": _("The GPUs cannot talk to each other."),
}
NEXT_STEPS: Final[Mapping[str, Promise]] = {
    "driver_mismatch": _("Restart the server, or reload the NVIDIA kernel modules."),
    "driver_too_old": _("Update the driver, or choose an older engine version."),
    "no_gpu": _("Give the replica a GPU; for containers check the NVIDIA container toolkit on the server."),
    "unknown_argument": _("Take it out, or choose an engine version that has it."),
    "port_in_use": _("Stop what listens there, or give the replica another port."),
    "disk_full": _("Remove models or images that are no longer used, or give the server a larger disk."),
    "program_missing": _("Install it on the server, or run it as a container."),
    "remote_code": _("Turn on trust_remote_code if you trust the model's authors."),
    "model_refused": _("Accept the model's terms at the hub and give a token as a secret (HF_TOKEN)."),
    "hub_unreachable": _("Set a mirror for this server (HF_ENDPOINT), choose ModelScope, or give a path on the host."),
    "model_missing": _(
        "Check the model's name and revision, and whether the hub holds the files that this engine loads."
    ),
    "model_unknown": _("Choose a newer engine version, or another engine."),
    "heads_not_divisible": _("Choose a tensor-parallel size that divides the heads."),
    "precision_unsupported": _("Choose float16 or another quantisation, or a newer card."),
    "context": _("Set the context to %(fits)s tokens or less, or give the cache more memory."),
    "context_hopeless": _("Use more GPUs, a stronger quantisation or a smaller model."),
    "no_cache_memory": _("Raise the share of memory to %(share)s, or use more GPUs or a stronger quantisation."),
    "memory_taken": _("Stop what else runs on the card, or lower the share of memory."),
    "cuda_memory": _("Halve the requests at once to %(slots)s, or lower the share of memory a little."),
    "cuda_memory_alone": _("Use a shorter context, more GPUs, a stronger quantisation or a smaller model."),
    "shared_memory": _("Give the container more shared memory."),
    "host_memory": _("Load fewer models at once, or choose a machine with more memory."),
    "cards_cannot_talk": _(
        "Try without peer-to-peer (NCCL_P2P_DISABLE=1); if that helps, the links between the cards are at fault."
    ),
}
