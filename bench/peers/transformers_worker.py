#!/usr/bin/env python3
"""transformers, kvpress and peft as peers: transformers_worker.py MODEL_FOLDER DTYPE THREADS"""

import contextlib
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from kvpress import CompactorPress
from peft import LoraConfig, PeftModel, get_peft_model
from worker import InTurn, context_ids, prompt_ids, question_ids, serve, timed

MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


class Peer:
    def __init__(self, folder, dtype, threads):
        torch.set_num_threads(threads)
        transformers.utils.logging.disable_progress_bar()
        load = transformers.AutoModelForCausalLM.from_pretrained
        self.load = lambda: load(
            folder, dtype=getattr(torch, dtype), attn_implementation="sdpa").eval()
        self.model = self.load()
        self.adapted = None
        self.in_turn = None

    def ingest(self, tokens, ratio_ppm):
        """Prefill without logits; with a ratio under kvpress' Compactor."""
        ids = torch.tensor([context_ids(tokens)])
        press = CompactorPress(ratio_ppm / 1e6)(self.model) if ratio_ppm else contextlib.nullcontext()
        with torch.inference_mode(), press:
            return {"seconds": timed(lambda: self.model.model(ids, use_cache=True))}

    def decode(self, streams, tokens, rank):
        model = self.with_adapter(rank) if rank else self.model
        with torch.inference_mode():
            out = model(torch.tensor([prompt_ids()] * streams), use_cache=True)
            past, ids = out.past_key_values, out.logits[:, -1:].argmax(-1)

            def run():
                nonlocal ids
                for _ in range(tokens):
                    step = model(ids, past_key_values=past, use_cache=True)
                    ids = step.logits[:, -1:].argmax(-1)

            return {"seconds": timed(run), "tokens": streams * tokens}

    def first_token(self, tokens):
        """The document and the question in the prompt, from nothing."""
        ids = torch.tensor([context_ids(tokens) + question_ids()])
        with torch.inference_mode():
            return {"seconds": timed(lambda: self.model(ids, logits_to_keep=1).logits.argmax())}

    def with_adapter(self, rank):
        if self.adapted is None:
            config = LoraConfig(r=rank, lora_alpha=rank, target_modules=MODULES,
                                init_lora_weights=False)
            self.adapted = get_peft_model(self.load(), config).to(self.model.dtype).eval()
        return self.adapted

    def answers(self, contexts, adapters, questions, question, tokens):
        """Behind the documents' caches, which kvpress compressed at ratio 0.9."""
        if self.in_turn is None:
            self.in_turn = InTurn(Adapted(self, contexts, adapters).answer, len(contexts))
        return self.in_turn.run(questions, question, tokens)


class Adapted:
    """Documents' compressed caches, made by the base model, and a model with all their adapters."""

    def __init__(self, peer, contexts, adapters):
        self.lengths = [len(ids) for ids in contexts]
        self.caches = []
        with torch.inference_mode(), CompactorPress(0.9)(peer.model):
            for ids in contexts:
                out = peer.model.model(torch.tensor([ids]), use_cache=True)
                self.caches.append(out.past_key_values)
        self.model = PeftModel.from_pretrained(
            peer.load(), adapters[0], adapter_name="0", autocast_adapter_dtype=False)
        for number, adapter in enumerate(adapters[1:], start=1):
            self.model.load_adapter(adapter, str(number), autocast_adapter_dtype=False)
        self.model.eval()

    def answer(self, number, question, tokens):
        """Positions go on behind the whole document; afterwards the cache is as before."""
        self.model.set_adapter(str(number))
        cache, position = self.caches[number], self.lengths[number]
        kept = cache.get_seq_length()
        ids = torch.tensor([question])
        with torch.inference_mode():
            for _ in range(tokens):
                places = torch.arange(position, position + ids.shape[1])[None]
                logits = self.model(input_ids=ids, position_ids=places, past_key_values=cache,
                                    use_cache=True, logits_to_keep=1).logits
                position += ids.shape[1]
                ids = logits[:, -1:].argmax(-1)
        cache.crop(kept)


if __name__ == "__main__":
    peer = Peer(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    serve({"ingest": peer.ingest, "decode": peer.decode, "first_token": peer.first_token,
           "answers": peer.answers})
