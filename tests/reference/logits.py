"""Logits of whole prompts and the numbers of rotary embeddings, from transformers.

Sources: transformers modeling_rope_utils (inverse frequencies of each RoPE type), LlamaRotaryEmbedding.
"""

import torch

from common import MODELS, load_model, path, random_ids, save_json, save_tensors

NAMES = ["tiny-llama", "tiny-llama-rope3", "tiny-qwen3", "tiny-llama-bias"]
FAR_STARTS = [10, 9000, 60000]
COS_POSITIONS = [0, 1, 10, 255, 4097, 9000, 60000, 100000]

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
ROPES = {
    "default": {"rope_theta": 100000.0, "rope_type": "default"},
    "default_1e6": {"rope_theta": 1000000.0, "rope_type": "default"},
    "linear": {"rope_theta": 10000.0, "rope_type": "linear", "factor": 4.0},
    "llama3": {
        "rope_theta": 500000.0,
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "llama32": {
        "rope_theta": 500000.0,
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "yarn": {"rope_theta": 1000000.0, **YARN},
    "yarn_options": {
        "rope_theta": 10000.0,
        **YARN,
        "beta_fast": 24.0,
        "beta_slow": 2.0,
        "attention_factor": 1.2,
    },
    "yarn_no_truncate": {"rope_theta": 150000.0, **YARN, "factor": 32.0, "truncate": False},
    "yarn_mscale": {
        "rope_theta": 10000.0,
        **YARN,
        "factor": 40.0,
        "mscale": 0.707,
        "mscale_all_dim": 1.0,
    },
}


def far_positions() -> list[int]:
    """24 positions: eight from each of 10, 9000 and 60000 on."""
    return [start + i for start in FAR_STARTS for i in range(8)]


def prompt_logits(name: str) -> None:
    """logits/<name>.safetensors: ids [T], logits [T, V]; far_ids, far_positions [24], far_logits [24, V]."""
    model = load_model(MODELS / name)
    vocabulary = model.config.vocab_size
    ids = torch.tensor(random_ids(21, 40, 3, vocabulary))
    far_ids = torch.tensor(random_ids(22, 24, 3, vocabulary))
    positions = torch.tensor(far_positions())
    # Without a mask transformers takes jumps in the positions for the starts of other prompts.
    mask = torch.ones(1, len(positions), dtype=torch.long)
    far = model(
        input_ids=far_ids[None], position_ids=positions[None], attention_mask=mask, use_cache=False
    ).logits[0]
    save_tensors(
        path("logits", f"{name}.safetensors"),
        {
            "ids": ids,
            "logits": model(input_ids=ids[None], use_cache=False).logits[0],
            "far_ids": far_ids,
            "far_positions": positions,
            "far_logits": far,
        },
    )


def rope_numbers(dim: int) -> dict[str, torch.Tensor]:
    """For each RoPE: inv_freq_bits [D/2] int32, cos and sin [positions, D/2], scaling [1]."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    positions = torch.tensor(COS_POSITIONS)
    result = {"positions": positions}
    for name, parameters in ROPES.items():
        config = LlamaConfig(
            hidden_size=4 * dim,
            num_attention_heads=4,
            head_dim=dim,
            max_position_embeddings=131072,
            rope_parameters=dict(parameters),
        )
        rope = LlamaRotaryEmbedding(config)
        cos, sin = rope(torch.zeros(1), positions[None])
        result |= {
            f"{name}.inv_freq_bits": rope.inv_freq.view(torch.int32),
            f"{name}.cos": cos[0, :, : dim // 2],
            f"{name}.sin": sin[0, :, : dim // 2],
            f"{name}.scaling": torch.tensor([float(rope.attention_scaling)]),
        }
    return result


def make() -> None:
    for name in NAMES:
        prompt_logits(name)
    save_tensors(path("rope", "rope64.safetensors"), rope_numbers(64))
    save_tensors(path("rope", "rope128.safetensors"), rope_numbers(128))
    save_json(path("rope", "rope.json"), ROPES)
