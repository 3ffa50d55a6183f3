"""Random Hugging Face folders small enough to commit, in the spellings that real models use.

H = 4 query heads, G = 2 KV heads, 2 layers, hidden 64. D is 64 where the scorer is tested: its Gram
matrix of 48 sketch columns is only regular when hidden and D are at least 48.
Weights are normal with std gain / sqrt(fan in), so attention and logits are far from uniform.
"""

import math

import torch

import tiny_tokenizer
from common import MODELS, generator, save_json, save_weights

LAYERS, HIDDEN, INTERMEDIATE, HEADS, KV_HEADS = 2, 64, 96, 4, 2

BASE_CONFIG = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "initializer_range": 0.02,
    "intermediate_size": INTERMEDIATE,
    "max_position_embeddings": 131072,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": KV_HEADS,
    "use_cache": True,
}

LLAMA = {
    **BASE_CONFIG,
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "mlp_bias": False,
    "vocab_size": 600,
    "head_dim": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000.0,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
}

LLAMA_ROPE3 = {
    **BASE_CONFIG,
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "mlp_bias": False,
    "vocab_size": 320,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "factor": 8.0,
        "high_freq_factor": 4.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "tie_word_embeddings": True,
    "torch_dtype": "float32",
    "bos_token_id": 0,
    "eos_token_id": [1, 2],
}

QWEN3 = {
    **BASE_CONFIG,
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 320,
    "head_dim": 64,
    "rms_norm_eps": 1e-6,
    "dtype": "bfloat16",
    "max_window_layers": LAYERS,
    "layer_types": ["full_attention"] * LAYERS,
    "sliding_window": None,
    "use_sliding_window": False,
    "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"},
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "pad_token_id": None,
}


BIAS = {
    **BASE_CONFIG,
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 128,
    "hidden_size": 32,
    "intermediate_size": 48,
    "attention_bias": True,
    "mlp_bias": True,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {
        "rope_theta": 10000.0,
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 32768,
    },
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def weights(config: dict, seed: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """All parameters under their Hugging Face names; matrices are [out, in]."""
    source = generator(seed)
    hidden, intermediate = config["hidden_size"], config["intermediate_size"]
    dim = config.get("head_dim", hidden // HEADS)

    def matrix(rows: int, columns: int, gain: float = 1.0) -> torch.Tensor:
        return torch.randn(rows, columns, generator=source) * (gain / math.sqrt(columns))

    def key_matrix() -> torch.Tensor:
        """Orthogonal columns per KV head where D = hidden: keeps the scorer's Gram well conditioned."""
        if dim != hidden:
            return matrix(KV_HEADS * dim, hidden, 1.3)
        return 1.3 * torch.cat([torch.linalg.qr(matrix(dim, hidden)).Q for _ in range(KV_HEADS)])

    def biases(prefix: str, made: dict) -> dict[str, torch.Tensor]:
        names = [n for n in made if n.startswith(prefix) and n.endswith("_proj.weight")]
        return {
            n.replace(".weight", ".bias"): 0.5 * torch.randn(made[n].shape[0], generator=source)
            for n in names
        }

    def norm(size: int) -> torch.Tensor:
        return 1 + 0.2 * torch.randn(size, generator=source)

    result = {"model.embed_tokens.weight": matrix(config["vocab_size"], hidden, 3.0)}
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        result |= {
            prefix + "self_attn.q_proj.weight": matrix(HEADS * dim, hidden, 1.3),
            prefix + "self_attn.k_proj.weight": key_matrix(),
            prefix + "self_attn.v_proj.weight": matrix(KV_HEADS * dim, hidden, 1.3),
            prefix + "self_attn.o_proj.weight": matrix(hidden, HEADS * dim, 1.3),
            prefix + "mlp.gate_proj.weight": matrix(intermediate, hidden, 1.2),
            prefix + "mlp.up_proj.weight": matrix(intermediate, hidden, 1.2),
            prefix + "mlp.down_proj.weight": matrix(hidden, intermediate, 1.2),
            prefix + "input_layernorm.weight": norm(hidden),
            prefix + "post_attention_layernorm.weight": norm(hidden),
        }
        if config["model_type"] == "qwen3":
            result[prefix + "self_attn.q_norm.weight"] = norm(dim)
            result[prefix + "self_attn.k_norm.weight"] = norm(dim)
        if config.get("mlp_bias"):
            result |= biases(prefix, result)
    result["model.norm.weight"] = norm(hidden)
    if not config["tie_word_embeddings"]:
        result["lm_head.weight"] = matrix(config["vocab_size"], hidden, 3.0)
    return {name: tensor.to(dtype).contiguous() for name, tensor in result.items()}


def write_weights(folder, tensors: dict[str, torch.Tensor], shards: int) -> None:
    """One file, or `shards` files with the index that transformers writes."""
    if shards == 1:
        save_weights(folder / "model.safetensors", tensors)
        return
    names = sorted(tensors)
    weight_map = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        part = names[shard * len(names) // shards : (shard + 1) * len(names) // shards]
        save_weights(folder / file, {n: tensors[n] for n in part})
        weight_map |= {n: file for n in part}
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    save_json(
        folder / "model.safetensors.index.json",
        {"metadata": {"total_size": size}, "weight_map": weight_map},
    )


def write_model(
    name: str, config: dict, seed: int, dialect: str | None, dtype: torch.dtype, shards: int = 1
):
    folder = MODELS / name
    folder.mkdir(parents=True, exist_ok=True)
    save_json(folder / "config.json", config)
    eos = config["eos_token_id"]
    save_json(
        folder / "generation_config.json",
        {
            "bos_token_id": config["bos_token_id"],
            "eos_token_id": [eos, 0] if name == "tiny-llama" else eos,
        },
    )
    write_weights(folder, weights(config, seed, dtype), shards)
    if dialect:
        tiny_tokenizer.write(
            folder, dialect, config["vocab_size"], config["max_position_embeddings"]
        )


def make() -> None:
    write_model("tiny-llama", LLAMA, 11, "chatml", torch.float32)
    write_model("tiny-llama-rope3", LLAMA_ROPE3, 12, "llama3", torch.float32, shards=2)
    write_model("tiny-qwen3", QWEN3, 13, "qwen3", torch.bfloat16)
    write_model("tiny-llama-bias", BIAS, 14, None, torch.bfloat16)
