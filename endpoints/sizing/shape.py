"""The shape of a model, as far as its memory depends on it, also from a Hugging Face config.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from panel.core.errors import InvalidInput

_MOST: Final = 10**7  # above every dimension of a model; keeps arithmetic on a stranger's file small


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelShape:
    """A decoder, as its memory sees it.

    parameters: all, embeddings included; embedding_parameters: of those. kv_heads, head_size: of grouped-query attention.
    latent_size: values per token and layer of multi-head latent attention (DeepSeek), 0 for the others; it lies whole on each
    GPU. layers: that keep a KV cache; window_layers of them keep `window` tokens only. max_context: None when not told.
    is_partial: parameters of a vision or audio part are not counted.
    """

    parameters: int
    layers: int
    attention_heads: int
    kv_heads: int
    head_size: int
    embedding_parameters: int = 0
    hidden_size: int = 0
    intermediate_size: int = 0
    vocabulary: int = 0
    latent_size: int = 0
    window: int = 0
    window_layers: int = 0
    experts: int = 0
    max_context: int | None = None
    is_partial: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no model. Raises InvalidInput."""
        for name in ("parameters", "layers", "attention_heads", "kv_heads", "head_size"):
            if getattr(self, name) < 1:
                raise InvalidInput(_("%(name)s must be at least 1.") % {"name": name}, field=name)
        if self.attention_heads % self.kv_heads:
            raise InvalidInput(_("kv_heads must divide attention_heads."), field="kv_heads")


def shape_from_config(config: Mapping[str, Any], *, parameters: int | None = None) -> ModelShape:
    """Return the shape that a Hugging Face config.json describes; of a model with several parts, its language part.

    parameters: as the checkpoint's index states them; else they are counted from the dimensions (gated feed-forward layers,
    grouped-query or latent attention, mixtures of experts; biases and norms, below 0.1 %, are left out). Raises InvalidInput
    that names the missing field.
    """
    text = config.get("text_config")
    inner = text if isinstance(text, Mapping) else config
    layers, hidden = _whole(inner, "num_hidden_layers"), _whole(inner, "hidden_size")
    heads = _whole(inner, "num_attention_heads")
    kv_heads = _whole(inner, "num_key_value_heads", heads)
    head = _whole(inner, "head_dim", max(hidden // heads, 1))
    vocabulary = _whole(inner, "vocab_size")
    is_tied = bool(inner.get("tie_word_embeddings", config.get("tie_word_embeddings", False)))
    embedding = vocabulary * hidden * (1 if is_tied else 2)
    rank = _whole(inner, "kv_lora_rank", 0)
    latent = rank + _whole(inner, "qk_rope_head_dim", 0) if rank else 0
    cached, window, window_layers = _cached_layers(inner, layers)
    counted = (
        embedding + layers * _attention(inner, hidden, heads, kv_heads, head) + _feed_forward(inner, layers, hidden)
    )
    limit = _whole(inner, "max_position_embeddings", 0)
    return ModelShape(
        parameters=parameters or counted,
        embedding_parameters=embedding,
        layers=cached,
        attention_heads=heads,
        kv_heads=kv_heads,
        head_size=head,
        hidden_size=hidden,
        intermediate_size=_whole(inner, "intermediate_size", 0),
        vocabulary=vocabulary,
        latent_size=latent,
        window=window,
        window_layers=window_layers,
        experts=_experts(inner),
        max_context=limit or None,
        is_partial=parameters is None and any(key in config for key in ("vision_config", "audio_config")),
    )


def _whole(config: Mapping[str, Any], key: str, usual: int | None = None) -> int:
    """Return a whole number of the configuration. Raises InvalidInput."""
    value = config.get(key)
    if value is None and usual is not None:
        return usual
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not 0 <= value <= _MOST
        or (value == 0 and usual is None)
    ):
        raise InvalidInput(
            _("The model's config.json says nothing usable as “%(key)s”: type the model's shape in by hand.")
            % {"key": key},
            field=key,
        )
    return value


def _experts(config: Mapping[str, Any]) -> int:
    keys = ("num_local_experts", "n_routed_experts", "num_experts")
    return next((_whole(config, key) for key in keys if config.get(key)), 0)


def _attention(config: Mapping[str, Any], hidden: int, heads: int, kv_heads: int, head: int) -> int:
    """Return the parameters of one attention layer."""
    rank = _whole(config, "kv_lora_rank", 0)
    if not rank:
        return hidden * head * (2 * heads + 2 * kv_heads)
    nope, rope, value = (_whole(config, key) for key in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    query_rank = _whole(config, "q_lora_rank", 0)
    wide = heads * (nope + rope)
    query = hidden * query_rank + query_rank * wide if query_rank else hidden * wide
    return query + hidden * (rank + rope) + rank * heads * (nope + value) + heads * value * hidden


def _feed_forward(config: Mapping[str, Any], layers: int, hidden: int) -> int:
    """Return the parameters of all feed-forward layers."""
    experts = _experts(config)
    if not experts:
        return layers * 3 * hidden * _whole(config, "intermediate_size")
    dense = min(_whole(config, "first_k_dense_replace", 0), layers)
    narrow = _whole(config, "moe_intermediate_size", _whole(config, "intermediate_size", 0))
    shared = _whole(config, "shared_expert_intermediate_size", _whole(config, "n_shared_experts", 0) * narrow)
    sparse = 3 * hidden * (experts * narrow + shared) + hidden * experts
    return dense * 3 * hidden * _whole(config, "intermediate_size", 0) + (layers - dense) * sparse


def _cached_layers(config: Mapping[str, Any], layers: int) -> tuple[int, int, int]:
    """Return how many layers keep a KV cache, the window of those that slide, and how many of them slide."""
    window = config.get("sliding_window")
    window = window if isinstance(window, int) and not isinstance(window, bool) and 0 < window <= _MOST else 0
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and kinds:
        sliding = kinds.count("sliding_attention") if window else 0
        return max(sum(1 for kind in kinds if "linear" not in str(kind)), 1), window, sliding
    if not window or config.get("use_sliding_window") is False:
        return layers, 0, 0
    every = config.get("sliding_window_pattern")
    if isinstance(every, int) and every > 1:
        return layers, window, layers - layers // every
    return layers, window, layers
