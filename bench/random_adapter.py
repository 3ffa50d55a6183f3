"""Writes LoRA folders as peft would, with random numbers: a trained adapter's work without training."""

import json
from pathlib import Path

import numpy

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


def bfloat16(numbers):
    """The bytes of 32-bit numbers, each rounded to the nearest with 16 bits."""
    bits = numpy.ascontiguousarray(numbers, numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()


def save(tensors, path):
    """A safetensors file in bfloat16; its library writes that from torch only."""
    header, sections = {}, []
    for name, numbers in tensors.items():
        begin = sum(map(len, sections))
        sections.append(bfloat16(numbers))
        header[name] = {"dtype": "BF16", "shape": numbers.shape,
                        "data_offsets": [begin, begin + len(sections[-1])]}
    text = json.dumps(header).encode()
    path.write_bytes(b"".join([len(text).to_bytes(8, "little"), text, *sections]))


def write_adapter(folder: Path, model: Path, rank: int, seed: int) -> None:
    """A in bf16 with deviation 1/sqrt(inputs), B with a small one; scale 1."""
    config = json.loads((model / "config.json").read_text())
    source = numpy.random.default_rng(seed)
    tensors = {}
    for layer in range(config["num_hidden_layers"]):
        for name, (part, inputs, outputs) in module_shapes(config).items():
            key = f"base_model.model.model.layers.{layer}.{part}.{name}"
            down = source.standard_normal((rank, inputs), numpy.float32) / inputs**0.5
            up = source.standard_normal((outputs, rank), numpy.float32) * B_DEVIATION
            tensors[f"{key}.lora_A.weight"] = down
            tensors[f"{key}.lora_B.weight"] = up
    folder.mkdir(parents=True, exist_ok=True)
    save(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": model.name,
        "r": rank, "lora_alpha": rank, "lora_dropout": 0.0, "bias": "none",
        "target_modules": MODULES, "inference_mode": True}))
