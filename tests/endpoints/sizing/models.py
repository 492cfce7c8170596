"""Shapes of published models, as their config.json at the Hugging Face hub states them."""


def llama(hidden, layers, heads, kv_heads, intermediate, vocabulary=128256, **more):
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": intermediate,
        "vocab_size": vocabulary,
        "torch_dtype": "bfloat16",
        **more,
    }


QWEN25_05B = llama(896, 24, 14, 2, 4864, 151936, tie_word_embeddings=True)
QWEN25_15B = llama(1536, 28, 12, 2, 8960, 151936, tie_word_embeddings=True)
QWEN25_14B = llama(5120, 48, 40, 8, 13824, 152064)
QWEN25_32B = llama(5120, 64, 40, 8, 27648, 152064)
QWEN25_72B = llama(8192, 80, 64, 8, 29568, 152064, sliding_window=131072, use_sliding_window=False)
LLAMA31_8B = llama(4096, 32, 32, 8, 14336, max_position_embeddings=131072)
LLAMA31_70B = llama(8192, 80, 64, 8, 28672, max_position_embeddings=131072)
LLAMA31_405B = llama(16384, 126, 128, 8, 53248, max_position_embeddings=131072)
MIXTRAL_8X7B = llama(4096, 32, 32, 8, 14336, 32000, num_local_experts=8)
QWEN3_235B = llama(
    4096, 94, 64, 4, 12288, 151936, head_dim=128, num_experts=128, moe_intermediate_size=1536, decoder_sparse_step=1
)
DEEPSEEK_V3 = llama(
    7168,
    61,
    128,
    128,
    18432,
    129280,
    kv_lora_rank=512,
    q_lora_rank=1536,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    n_routed_experts=256,
    n_shared_experts=1,
    moe_intermediate_size=2048,
    first_k_dense_replace=3,
    quantization_config={"quant_method": "fp8"},
)
