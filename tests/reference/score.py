"""Log-probabilities of given answers in the four modes, from transformers, peft and kvpress.

Served form of BASE_KV_ADAPTER_DECODE: the context under `disable_adapter()`, then its cache as
`past_key_values` and the adapter on from the first bridge token (scope "question") or from the last prompt
token (scope "answer").
"""

from contextlib import nullcontext

import torch

from adapters import load_adapter
from common import path, random_ids, save_json, save_tensors
from compression import context_ids, sketch
from kvpress_golden import Recorder, gather, kept_count, prefill

HEAD, LENGTH, PROMPT, ANSWER, END_OF_TURN = 17, 300, 15, 20, 2
RATIOS = [0, 500_000, 900_000, 1_000_000]
ADAPTERS = {"all-modules": "tiny-llama", "query-value": "tiny-llama", "qwen3": "tiny-qwen3"}
# mode -> (adapter on while prefilling, adapter on while scoring, adapter on while decoding)
MODES = {
    "BASE": (False, False, False),
    "BASE_KV_ADAPTER_DECODE": (False, False, True),
    "ADAPTER_PREFILL": (True, True, True),
    "BASE_SCORE_ADAPTER_PREFILL": (True, False, True),
}


def switched(model, on: bool):
    return nullcontext() if on else model.disable_adapter()


def kept_by(model, adapter: bool, ids: torch.Tensor, ppm: int) -> torch.Tensor:
    """Positions [L, G, n] that kvpress keeps with the adapter on or off."""
    inner = model.base_model.model
    recorder = Recorder(sketch(inner.config, 61), HEAD, kept_count(len(ids), HEAD, ppm), ppm / 1e6)
    with switched(model, adapter):
        prefill(inner, ids, recorder)
    return recorder.stacked("kept")


def context_cache(model, mode: str, ppm: int):
    """The mode's cache, the question's position and the kept positions (None where nothing is scored)."""
    prefilling, scoring, _ = MODES[mode]
    inner = model.base_model.model
    ids = context_ids(inner)[: HEAD if ppm == 1_000_000 else LENGTH]
    with switched(model, prefilling):
        cache = prefill(inner, ids)
    if ppm in (0, 1_000_000):
        return cache, len(ids), None
    kept = kept_by(model, scoring, ids, ppm)
    return gather(cache, kept), len(ids), kept


def log_probabilities(
    model, mode: str, scope: str, ppm: int, prompt: torch.Tensor, answer: torch.Tensor
):
    """[A]: log softmax in fp32 of each answer id, each given all before it."""
    cache, position, kept = context_cache(model, mode, ppm)
    rows = torch.cat([prompt, answer[:-1]])
    positions = torch.arange(position, position + len(rows))
    on = MODES[mode][2]
    split = len(prompt) - 1 if scope == "answer" else 0
    logits = []
    for part, adapter in ((slice(0, split), False), (slice(split, None), on)):
        if len(rows[part]):
            with switched(model, adapter):
                logits.append(
                    model(
                        input_ids=rows[part][None],
                        position_ids=positions[part][None],
                        past_key_values=cache,
                    ).logits[0]
                )
    scores = torch.cat(logits)[len(prompt) - 1 :].float().log_softmax(dim=-1)
    return scores.gather(1, answer[:, None])[:, 0], kept


def make() -> None:
    cases = []
    for name, base in ADAPTERS.items():
        model = load_adapter(name)
        vocabulary = model.config.vocab_size
        prompt = torch.tensor(random_ids(71, PROMPT, 5, vocabulary))
        answer = torch.tensor(random_ids(72, ANSWER, 5, vocabulary) + [END_OF_TURN])
        tensors = {"prompt": prompt, "answer": answer}
        for mode in MODES:
            for scope in ["question"] if mode == "BASE" else ["question", "answer"]:
                for ppm in RATIOS:
                    key = f"{mode}.{scope}.{ppm}"
                    tensors[key], kept = log_probabilities(model, mode, scope, ppm, prompt, answer)
                    if (
                        kept is not None
                        and scope == "question"
                        and mode in ("BASE", "ADAPTER_PREFILL")
                    ):
                        tensors[f"kept.{mode}.{ppm}"] = kept.to(torch.int32)
        save_tensors(path("score", f"{name}.safetensors"), tensors)
        cases.append(
            {
                "file": f"{name}.safetensors",
                "adapter": name,
                "model": base,
                "length": LENGTH,
                "head": HEAD,
            }
        )
    save_json(path("score", "cases.json"), cases)
