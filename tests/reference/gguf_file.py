"""Writes a Hugging Face folder with bf16 weights, or a LoRA folder, as a GGUF for llama.cpp."""

import json
from pathlib import Path

import gguf
import numpy as np


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """A safetensors file's bf16 tensors, each as the fp32 it stands for."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "BF16", name
        first, last = entry["data_offsets"]
        upper_halves = np.frombuffer(data[start + first : start + last], dtype="<u2")
        bits = upper_halves.astype(np.uint32) << 16
        tensors[name] = bits.view(np.float32).reshape(entry["shape"])
    return tensors


def interleave_rope_rows(weight: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp wants the rows of a head's two halves in turn; make_smollm2.py undoes the same."""
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, weight.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(weight.shape))


def write_gguf(folder: Path, path: Path, kind=gguf.GGMLQuantizationType.F32) -> None:
    """A llama model's folder as a GGUF without a vocabulary: ids go in and ids come out."""
    config = json.loads((folder / "config.json").read_text())
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_dimension_count(config["hidden_size"] // heads)
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, weight in read_tensors(folder / "model.safetensors").items():
        if name.endswith("q_proj.weight"):
            weight = interleave_rope_rows(weight, heads)
        elif name.endswith("k_proj.weight"):
            weight = interleave_rope_rows(weight, kv_heads)
        target = names.get_name(name, try_suffixes=(".weight",))
        if weight.ndim == 1 or kind == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(target, weight)
        else:
            writer.add_tensor(target, gguf.quants.quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_lora_gguf(model: Path, adapter: Path, path: Path) -> None:
    """A LoRA folder with bf16 weights for a llama model, as llama.cpp wants it; stays bf16."""
    config = json.loads((model / "config.json").read_text())
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    alpha = json.loads((adapter / "adapter_config.json").read_text())["lora_alpha"]
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, float(alpha))
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    kind = gguf.GGMLQuantizationType.BF16
    for name, weight in read_tensors(adapter / "adapter_model.safetensors").items():
        module, matrix = name.removeprefix("base_model.model.").split(".lora_")
        if matrix.startswith("B") and module.endswith(("q_proj", "k_proj")):
            weight = interleave_rope_rows(weight, heads if module.endswith("q_proj") else kv_heads)
        target = f"{names.get_name(module)}.weight.lora_{matrix[0].lower()}"
        writer.add_tensor(target, gguf.quants.quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
