"""A model for llama.cpp whose answers are known: after the word `w005` come ` w006 w007 …` up to ` w199`, then it stops.

Two layers pass everything through (their outputs are zero), so the last word alone decides: the output row of word k points
where word k-1 is embedded. A lost or repeated piece of a stream is visible, and the count of tokens is known beforehand.
"""

from pathlib import Path

import gguf
import numpy as np

WORDS = 200
WIDTH, LAYERS, HEADS, HIDDEN, CONTEXT = 64, 2, 4, 128, 2048
CHAT_TEMPLATE = "{% for m in messages %} {{ m['content'] }}{% endfor %}"
UNKNOWN, CONTROL, NORMAL, BYTE = (
    gguf.TokenType.UNKNOWN,
    gguf.TokenType.CONTROL,
    gguf.TokenType.NORMAL,
    gguf.TokenType.BYTE,
)


def word(number):
    """Return a word as it stands in answers, without its space."""
    return f"w{number:03d}"


def _vocabulary():
    """Return (token, score, type) of each token. Pieces between letters and words are there because merging goes by pairs."""
    tokens = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    tokens += [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    letters = ["\u2581", *"abcdefghijklmnopqrstuvwxyz0123456789"]
    tokens += [(letter, -2.0 - index, NORMAL) for index, letter in enumerate(letters)]
    pieces = ["\u2581w", *(f"\u2581w{digit}" for digit in "01"), *(f"\u2581w{number:02d}" for number in range(20))]
    tokens += [(piece, -50.0 - index, NORMAL) for index, piece in enumerate(pieces)]
    return tokens + [(f"\u2581{word(number)}", -100.0 - number, NORMAL) for number in range(WORDS)]


def _matrices(tokens):
    """Return the tensors by name, float32."""
    count = len(tokens)
    first = count - WORDS
    random = np.random.default_rng(7)
    embeddings = random.standard_normal((count, WIDTH)).astype(np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    output = np.zeros((count, WIDTH), dtype=np.float32)
    output[first + 1 :] = 8 * embeddings[first : count - 1]
    output[2] = 8 * embeddings[count - 1]  # after the last word: the end
    tensors = {
        "token_embd.weight": embeddings,
        "output_norm.weight": np.ones(WIDTH, np.float32),
        "output.weight": output,
    }
    for layer in range(LAYERS):
        square = (random.standard_normal((WIDTH, WIDTH)) * 0.05).astype(np.float32)
        wide = (random.standard_normal((HIDDEN, WIDTH)) * 0.05).astype(np.float32)
        tensors |= {
            f"blk.{layer}.attn_norm.weight": np.ones(WIDTH, np.float32),
            **{f"blk.{layer}.attn_{name}.weight": square for name in ("q", "k", "v")},
            f"blk.{layer}.attn_output.weight": np.zeros((WIDTH, WIDTH), np.float32),
            f"blk.{layer}.ffn_norm.weight": np.ones(WIDTH, np.float32),
            f"blk.{layer}.ffn_gate.weight": wide,
            f"blk.{layer}.ffn_up.weight": wide,
            f"blk.{layer}.ffn_down.weight": np.zeros((WIDTH, HIDDEN), np.float32),
        }
    return tensors


def write_ring_model(path: Path):
    """Write the model (0.6 MB) as GGUF; returns the path."""
    tokens = _vocabulary()
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("ring")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([token.encode() for token, _score, _kind in tokens])
    writer.add_token_scores([score for _token, score, _kind in tokens])
    writer.add_token_types([kind for _token, _score, kind in tokens])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(True)
    writer.add_chat_template(CHAT_TEMPLATE)
    for name, tensor in _matrices(tokens).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
