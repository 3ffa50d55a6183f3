"""Greedy answers over whole and compressed caches, as kvpress's pipeline decodes them."""

import torch

from common import MODELS, load_model, path, random_ids, save_json, save_tensors
from compression import NAMES, context_ids, sketch
from kvpress_golden import Recorder, kept_count, prefill

HEAD = 17
QUESTION, ANSWER, TOP = 12, 32, 8
# (length, ratio): 0 keeps all, 10^6 leaves the head alone and the question follows it.
CASES = [
    (120, 0),
    (120, 900_000),
    (300, 500_000),
    (300, 900_000),
    (1000, 950_000),
    (300, 1_000_000),
]
FULL_LOGITS = (300, 900_000)
MIN_GAP = 0.03


class IdTokenizer:
    """Lets the pipeline's own decoding hand back ids."""

    @staticmethod
    def decode(ids, **_) -> str:
        return " ".join(str(i) for i in ids.tolist())


def pipeline_ids(model, question: torch.Tensor, cache, position: int) -> list[int]:
    """The ids that kvpress's generate_answer gives (it stops behind an EOS)."""
    from kvpress import KVPressTextGenerationPipeline

    pipeline = KVPressTextGenerationPipeline.__new__(KVPressTextGenerationPipeline)
    pipeline.model, pipeline.tokenizer = model, IdTokenizer()
    text = pipeline.generate_answer(question[None], cache, position, ANSWER)
    return [int(word) for word in text.split()]


def greedy(model, question: torch.Tensor, cache, position: int):
    """Answer ids [32], never stopped by an EOS, and the logits [32, V] that chose them."""
    step, rows = question, []
    for _ in range(ANSWER):
        positions = torch.arange(position, position + len(step))
        rows.append(
            model(input_ids=step[None], position_ids=positions[None], past_key_values=cache).logits[
                0, -1
            ]
        )
        position += len(step)
        step = rows[-1].argmax()[None]
    logits = torch.stack(rows)
    return logits.argmax(dim=-1), logits


def cache_of(model, sketches, length: int, ppm: int):
    """The context's cache and the position where the question starts."""
    if ppm == 1_000_000:
        return prefill(model, context_ids(model)[:HEAD]), HEAD
    ids = context_ids(model)[:length]
    if ppm == 0:
        return prefill(model, ids), length
    press = Recorder(sketches, HEAD, kept_count(length, HEAD, ppm), ppm / 1e6)
    return prefill(model, ids, press), length


def answer_case(model, sketches, length: int, ppm: int):
    """Takes the first question seed whose answer is decided by MIN_GAP at every step."""
    for seed in range(100, 400):
        question = torch.tensor(random_ids(seed, QUESTION, 5, model.config.vocab_size))
        cache, position = cache_of(model, sketches, length, ppm)
        ids, logits = greedy(model, question, cache, position)
        top = logits.topk(TOP, dim=-1)
        gap = float((top.values[:, 0] - top.values[:, 1]).min())
        if gap > MIN_GAP and len(set(ids.tolist())) > 6:
            break
    else:
        raise RuntimeError(f"no decided answer at length {length}, ratio {ppm}")
    cache, _ = cache_of(model, sketches, length, ppm)
    reference = pipeline_ids(model, question, cache, position)
    assert ids.tolist()[: len(reference)] == reference
    tensors = {
        "question": question,
        "answer": ids,
        "top_ids": top.indices.to(torch.int32),
        "top_logits": top.values,
    }
    if (length, ppm) == FULL_LOGITS:
        tensors["logits"] = logits
    return tensors, gap, position


def make_model(name: str) -> list[dict]:
    model = load_model(MODELS / name)
    sketches = sketch(model.config, 61)
    cases = []
    for length, ppm in CASES:
        tensors, gap, position = answer_case(model, sketches, length, ppm)
        file = f"{name}-{length}-{ppm}.safetensors"
        save_tensors(path("answers", file), tensors)
        cases.append(
            {
                "file": file,
                "model": name,
                "length": length,
                "ratio_ppm": ppm,
                "head": HEAD,
                "question_position": position,
                "smallest_gap": round(gap, 4),
            }
        )
    return cases


def make() -> None:
    save_json(path("answers", "cases.json"), [case for name in NAMES for case in make_model(name)])
