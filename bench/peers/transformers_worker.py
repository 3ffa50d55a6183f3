#!/usr/bin/env python3
"""transformers, kvpress and peft as peers: transformers_worker.py MODEL_FOLDER DTYPE THREADS"""

import contextlib
import copy
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from kvpress import CompactorPress
from peft import LoraConfig, PeftModel, get_peft_model
from worker import InTurn, context_ids, peak_bytes, prompt_ids, question_ids, serve, timed

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
        self.training = None

    def train(self, steps):
        self.training = self.training or Training(self)
        return self.training.train(steps)

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


class Training:
    """An adapter trained with peft in the served form: the base model has written the prefix, and
    logits are made for rows with a label alone. The same batch as training_worker's."""

    SEQUENCES, PREFIX, QUESTION, ANSWER = 8, 30, 32, 16

    def __init__(self, peer):
        config = LoraConfig(r=16, lora_alpha=16, target_modules=MODULES, task_type="CAUSAL_LM")
        self.model = get_peft_model(peer.model, config, autocast_adapter_dtype=True)
        self.model.train()
        self.optimizer = torch.optim.AdamW(
            [p for p in self.model.parameters() if p.requires_grad], lr=2e-3, weight_decay=0.0)
        rows = self.QUESTION + self.ANSWER
        self.ids = torch.tensor([[(number * 613 + i * 41) % 20_000 + 700 for i in range(rows)]
                                 for number in range(self.SEQUENCES)])
        ends = torch.full((self.SEQUENCES, 1), 2)
        self.labels = torch.cat([self.ids[:, 1:], ends], 1)[:, self.QUESTION:]
        with torch.no_grad(), self.model.disable_adapter():
            prefix = torch.tensor([context_ids(self.PREFIX)] * self.SEQUENCES)
            self.prefix = self.model(prefix, use_cache=True, logits_to_keep=1).past_key_values

    def step(self):
        out = self.model.base_model.model.model(
            self.ids, past_key_values=copy.deepcopy(self.prefix), use_cache=True)
        logits = self.model.base_model.model.lm_head(out.last_hidden_state[:, self.QUESTION:])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), self.labels.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def train(self, steps):
        losses = []
        seconds = timed(lambda: losses.extend(self.step() for _ in range(steps)))
        return {"seconds": seconds, "tokens": steps * self.ids.numel(), "loss": losses[-1],
                "peak_bytes": peak_bytes()}


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
           "answers": peer.answers, "train": peer.train})
