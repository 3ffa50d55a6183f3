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
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests/reference"))
from gguf_file import write_gguf, write_lora_gguf
from worker import InTurn, context_ids, prompt_ids, question_ids, serve, timed

TYPES = {"bfloat16": gguf.GGMLQuantizationType.BF16, "float32": gguf.GGMLQuantizationType.F32,
         "q8_0": gguf.GGMLQuantizationType.Q8_0}
POSITIONS = 4096
ROOM = 256  # for question and answer behind a document
GGML_TYPE_BF16 = 30  # of ggml.h; the package has no name for it


class Peer:
    def __init__(self, folder, kind, threads):
        self.folder, self.threads = Path(folder), threads
        self.in_turn = None
        api.llama_backend_init()
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "model.gguf"
            write_gguf(self.folder, path, TYPES[kind])
            self.vocabulary = json.loads((self.folder / "config.json").read_text())["vocab_size"]
            parameters = api.llama_model_default_params()
            parameters.use_extra_bufts = kind != "q8_0"  # its AMX kernels for q8_0 end the process
            self.model = api.llama_model_load_from_file(str(path).encode(), parameters)
        self.kv_type = api.GGML_TYPE_F32 if kind == "float32" else GGML_TYPE_BF16
        self.context = self.make_context(1, POSITIONS)
        self.saved = {}

    def make_context(self, sequences, positions):
        """Each sequence has cells of its own for `positions`."""
        options = api.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = sequences * positions, 2048, 512
        options.n_seq_max, options.kv_unified = sequences, False
        options.n_threads = options.n_threads_batch = self.threads
        options.type_k = options.type_v = self.kv_type
        options.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_ENABLED
        return api.llama_init_from_model(self.model, options)

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

    def ingest(self, tokens, ratio_ppm):
        assert ratio_ppm == 0
        self.clear()
        return {"seconds": timed(lambda: self.run(context_ids(tokens)))}

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

    def answers(self, contexts, adapters, questions, question, tokens):
        """Every document stays whole in a sequence of its own: nothing has to be restored."""
        if self.in_turn is None:
            self.in_turn = InTurn(Slots(self, contexts, adapters).answer, len(contexts))
        return self.in_turn.run(questions, question, tokens)


class Slots:
    """Documents in the sequences of one context, each with its adapter; one answers at a time."""

    def __init__(self, peer, contexts, adapters):
        self.peer = peer
        self.lengths = [len(ids) for ids in contexts]
        self.context = peer.make_context(len(contexts), max(self.lengths) + ROOM)
        self.memory = api.llama_get_memory(self.context)
        self.batch = api.llama_batch_init(2048, 0, 1)
        for sequence, ids in enumerate(contexts):
            for first in range(0, len(ids), 512):
                self.run(sequence, first, ids[first : first + 512])
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "adapter.gguf"
            self.adapters = []
            for adapter in adapters:
                write_lora_gguf(peer.folder, Path(adapter), path)
                self.adapters.append(api.llama_adapter_lora_init(peer.model, str(path).encode()))

    def answer(self, sequence, question, tokens):
        """The document's adapter alone is on; afterwards the sequence holds the document again."""
        scale = (api.ctypes.c_float * 1)(1.0)
        one = (api.llama_adapter_lora_p_ctypes * 1)(self.adapters[sequence])
        if api.llama_set_adapters_lora(self.context, one, 1, scale):
            raise RuntimeError("llama.cpp refuses the adapter")
        position = self.lengths[sequence]
        step = self.run(sequence, position, question)
        position += len(question)
        for _ in range(tokens - 1):
            step = self.run(sequence, position, [step])
            position += 1
        api.llama_memory_seq_rm(self.memory, sequence, self.lengths[sequence], -1)

    def run(self, sequence, position, ids):
        """Decodes the ids from `position` on; the best next id."""
        batch = self.batch
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i] = token, position + i
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
            batch.logits[i] = i == len(ids) - 1
        if api.llama_decode(self.context, batch):
            raise RuntimeError("llama_decode failed")
        logits = api.llama_get_logits_ith(self.context, -1)
        return int(np.ctypeslib.as_array(logits, (self.peer.vocabulary,)).argmax())


if __name__ == "__main__":
    peer = Peer(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    serve({"ingest": peer.ingest, "decode": peer.decode, "first_token": peer.first_token,
           "answers": peer.answers})
