"""Writes LoRA folders as peft would, with random numbers: a trained adapter's work without training."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
B_DEVIATION = 0.01  # small beside the weights: answers stay sentences


def module_shapes(config):
    """Module → (its place in a layer, inputs, outputs)."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head = config.get("head_dim") or hidden // config["num_attention_heads"]
    queries = config["num_attention_heads"] * head
    values = config["num_key_value_heads"] * head
    shapes = {"q_proj": ("self_attn", hidden, queries), "k_proj": ("self_attn", hidden, values),
              "v_proj": ("self_attn", hidden, values), "o_proj": ("self_attn", queries, hidden),
              "gate_proj": ("mlp", hidden, inner), "up_proj": ("mlp", hidden, inner),
              "down_proj": ("mlp", inner, hidden)}
    return {name: shapes[name] for name in MODULES}


def write_adapter(folder: Path, model: Path, rank: int, seed: int) -> None:
    """A in bf16 with deviation 1/sqrt(inputs), B with a small one; scale 1."""
    config = json.loads((model / "config.json").read_text())
    source = torch.Generator().manual_seed(seed)
    tensors = {}
    for layer in range(config["num_hidden_layers"]):
        for name, (part, inputs, outputs) in module_shapes(config).items():
            key = f"base_model.model.model.layers.{layer}.{part}.{name}"
            down = torch.randn(rank, inputs, generator=source) / inputs**0.5
            up = torch.randn(outputs, rank, generator=source) * B_DEVIATION
            tensors[f"{key}.lora_A.weight"] = down.to(torch.bfloat16)
            tensors[f"{key}.lora_B.weight"] = up.to(torch.bfloat16)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": model.name,
        "r": rank, "lora_alpha": rank, "lora_dropout": 0.0, "bias": "none",
        "target_modules": MODULES, "inference_mode": True}))
