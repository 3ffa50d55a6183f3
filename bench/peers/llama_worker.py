#!/usr/bin/env python3
"""llama.cpp as a peer: llama_worker.py MODEL_FOLDER bfloat16|float32|q8_0 THREADS

The model folder becomes a GGUF without a vocabulary in a temporary folder: ids go in and come out.
Flash attention is on; keys and values have the engine's type.
"""

import json
import sys
import tempfile
from pathlib import Path

import gguf
import llama_cpp as api
import numpy as np
from worker import context_ids, prompt_ids, question_ids, serve, timed

TYPES = {"bfloat16": gguf.GGMLQuantizationType.BF16, "float32": gguf.GGMLQuantizationType.F32,
         "q8_0": gguf.GGMLQuantizationType.Q8_0}
POSITIONS = 4096
GGML_TYPE_BF16 = 30  # of ggml.h; the package has no name for it


def read_tensors(path):
    """A safetensors file's bf16 tensors as fp32."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        bits = np.frombuffer(data[start + first : start + last], dtype="<u2").astype(np.uint32) << 16
        yield name, bits.view(np.float32).reshape(entry["shape"])


def interleave_rope_rows(weight, heads):
    """llama.cpp wants the rows of a head's two halves in turn."""
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, weight.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(weight.shape))


def write_gguf(folder, kind, path):
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
    for name, weight in read_tensors(folder / "model.safetensors"):
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            weight = interleave_rope_rows(weight, heads if "q_proj" in name else kv_heads)
        target = names.get_name(name, try_suffixes=(".weight",))
        if weight.ndim == 1:
            writer.add_tensor(target, weight)
        else:
            writer.add_tensor(target, gguf.quants.quantize(weight, TYPES[kind]), raw_dtype=TYPES[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return config["vocab_size"]


class Peer:
    def __init__(self, folder, kind, threads):
        api.llama_backend_init()
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "model.gguf"
            self.vocabulary = write_gguf(Path(folder), kind, path)
            self.model = api.llama_model_load_from_file(
                str(path).encode(), api.llama_model_default_params())
        options = api.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = POSITIONS, 2048, 512
        options.n_threads = options.n_threads_batch = threads
        options.type_k = options.type_v = (
            api.GGML_TYPE_F32 if kind == "float32" else GGML_TYPE_BF16)
        options.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_ENABLED
        self.context = api.llama_init_from_model(self.model, options)
        self.saved = {}

    def run(self, ids):
        """Decodes the ids behind what is there; the best next id."""
        for first in range(0, len(ids), 2048):
            part = ids[first : first + 2048]
            tokens = (api.llama_token * len(part))(*part)
            if api.llama_decode(self.context, api.llama_batch_get_one(tokens, len(part))):
                raise RuntimeError("llama_decode failed")
        logits = api.llama_get_logits_ith(self.context, -1)
        return int(np.ctypeslib.as_array(logits, (self.vocabulary,)).argmax())

    def clear(self):
        api.llama_memory_clear(api.llama_get_memory(self.context), True)

    def decode(self, streams, tokens, rank):
        assert (streams, rank) == (1, 0)
        self.clear()
        step = self.run(prompt_ids())

        def go():
            nonlocal step
            for _ in range(tokens):
                step = self.run([step])

        return {"seconds": timed(go), "tokens": tokens}

    def first_token(self, tokens):
        """A saved slot of the document, in RAM, is restored, and the question prefilled."""
        if tokens not in self.saved:
            self.clear()
            self.run(context_ids(tokens))
            size = api.llama_state_seq_get_size(self.context, 0)
            self.saved[tokens] = (api.c_uint8 * size)() if hasattr(api, "c_uint8") else (
                np.ctypeslib.as_ctypes(np.empty(size, np.uint8)))
            api.llama_state_seq_get_data(self.context, self.saved[tokens], size, 0)
        self.clear()
        state = self.saved[tokens]

        def go():
            api.llama_state_seq_set_data(self.context, state, len(state), 0)
            self.run(question_ids())

        return {"seconds": timed(go)}


if __name__ == "__main__":
    peer = Peer(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    serve({"decode": peer.decode, "first_token": peer.first_token})
