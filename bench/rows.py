"""What `./dev bench` measures: one row compares the engine with a peer, or with a bound."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Side:
    """A measurement: a worker's name and the request it gets, and how its answer is read."""

    worker: str
    request: dict
    rate: bool = False  # tokens per second instead of seconds
    field: str = "seconds"

    def value(self, answer):
        if self.rate:
            return answer.get("tokens", self.request.get("tokens")) / answer[self.field]
        return answer[self.field]


@dataclass(frozen=True)
class Row:
    """`ratio` > 1 is good for the engine: ours ÷ peer of rates, peer ÷ ours of times."""

    name: str
    what: str
    ours: Side
    peer: Side
    target: float | None = None
    note: Callable[[list[dict]], str] | None = None  # what our answers tell besides

    @property
    def unit(self):
        if self.ours.field.endswith("bytes"):
            return "MB"
        return "tokens/s" if self.ours.rate else "ms"

    @property
    def scale(self):
        return {"MB": 1e-6, "tokens/s": 1.0, "ms": 1e3}[self.unit]


def answers_in_turn(sides, rounds):
    """What each function returns, called in turn after one unmeasured round."""
    answers = [[side() for side in sides] for _ in range(rounds + 1)]
    return list(zip(*answers[1:]))


def in_turn(sides, rounds):
    """Medians of the numbers that the functions return, called as above."""
    return [statistics.median(column) for column in answers_in_turn(sides, rounds)]


def scoring_apart(answers):
    scoring = statistics.median(answer["score_seconds"] for answer in answers)
    prefill = statistics.median(answer["seconds"] - answer["score_seconds"] for answer in answers)
    return (f"prefill {1e3 * prefill:.0f} ms, scoring and selection {1e3 * scoring:.0f} ms: "
            f"{100 * scoring / (prefill + scoring):.0f} %")


def from_disk(answers):
    megabytes = statistics.median(answer["bytes_from_disk"] for answer in answers) / 1e6
    return f"{megabytes:.2f} MB came from the disk"


def ingest(tokens):
    return Row(f"ingest_{tokens}", f"ingest {tokens} tokens at ratio 0.9; kvpress CompactorPress",
               Side("engine", {"measure": "ingest", "tokens": tokens, "ratio_ppm": 900_000}, True),
               Side("transformers", {"measure": "ingest", "tokens": tokens, "ratio_ppm": 900_000}, True),
               1.3, scoring_apart)


def prefill(tokens):
    return Row(f"prefill_{tokens}", f"prefill {tokens} tokens, all kept; transformers",
               Side("engine", {"measure": "ingest", "tokens": tokens, "ratio_ppm": 0}, True),
               Side("transformers", {"measure": "ingest", "tokens": tokens, "ratio_ppm": 0}, True))


def decode(streams, rank=0):
    return {"measure": "decode", "streams": streams, "tokens": 128, "rank": rank}


def batch(streams):
    return Row(f"decode_batch_{streams}", f"{streams} streams; transformers",
               Side("engine", decode(streams), True), Side("transformers", decode(streams), True))


def load(name, what, request):
    return Row(name, f"{what} with all checks; a plain read, both from the page cache",
               Side("engine", request), Side("engine", request, field="plain_seconds"), 1 / 1.5)


TRAIN = {"measure": "train", "steps": 4}


def train(name, what, worker, target=None):
    return Row(name, what, Side(worker, TRAIN, True), Side("peft", TRAIN, True), target)


def train_memory(name, what, worker, target=None):
    return Row(name, what, Side(worker, TRAIN, field="peak_bytes"),
               Side("peft", TRAIN, field="peak_bytes"), target)


HOT = {"measure": "first_token", "tokens": 2000, "cold": False}
COLD = {"measure": "first_token", "tokens": 2000, "cold": True}
AGAIN = {"measure": "first_token", "tokens": 2000}

ROWS = [
    ingest(400), ingest(2000), ingest(7800),
    prefill(400), prefill(2000), prefill(7800),
    Row("decode_vs_llamacpp", "one stream; llama.cpp, same bytes per weight",
        Side("engine", decode(1), True), Side("llama", decode(1), True), 1.0),
    Row("decode_vs_transformers", "one stream; transformers",
        Side("engine", decode(1), True), Side("transformers", decode(1), True), 3.0),
    Row("decode_vs_sweep", "one stream; our kernel over all weights and nothing else",
        Side("engine", decode(1), True), Side("engine", {"measure": "sweep"}, True), 0.9),
    Row("decode_int8_vs_llamacpp_q8", "one stream, int8 weights; llama.cpp q8_0",
        Side("engine_int8", decode(1), True), Side("llama_q8", decode(1), True), 1.3),
    Row("adapter_1_vs_peft", "one stream with an adapter of rank 16; peft",
        Side("engine", decode(1, 16), True), Side("transformers", decode(1, 16), True)),
    batch(2), batch(8), batch(32),
    Row("hot_ttft_vs_transformers", "first token, 2,000 tokens at 0.9 in memory; prefilled again",
        Side("engine", HOT), Side("transformers", AGAIN), 10.0),
    Row("hot_ttft_vs_llamacpp_slot", "first token, the same; llama.cpp, slot restored from RAM",
        Side("engine", HOT), Side("llama", AGAIN), 1 / 1.1),
    Row("cold_ttft_vs_llamacpp_slot", "first token, cache read from the disk; the same slot in RAM",
        Side("engine", COLD), Side("llama", AGAIN), note=from_disk),
    load("load_vs_read", "a cache file of 47 MB", {"measure": "load_cache", "tokens": 2000}),
    load("adapter_load_vs_read", "an adapter file of rank 32, 20 MB, in 420 sections",
         {"measure": "load_adapter", "rank": 32}),
    train("train_vs_peft", "trained tokens, 8 sequences of 48 rows, rank 16; peft", "trainer", 1.3),
    train_memory("train_memory_vs_peft", "peak memory of that process; peft's", "trainer", 1 / 0.6),
    train("train_recompute", "the same, activations computed again; peft", "trainer_recompute"),
    train_memory("train_recompute_memory", "peak memory of that process; peft's",
                 "trainer_recompute"),
]
# Allowed ÷ actual cost of adapters; see run.py.
COSTS = ("adapter_cost_1", "adapter_cost_8")
# What a fresh worker does before its peak memory is told; llama.cpp evicts nothing.
INGEST = {"measure": "ingest", "tokens": 2000, "ratio_ppm": 900_000}
PEAKS = {**{name: (INGEST, decode(1)) for name in ("engine", "engine_int8", "transformers")},
         **{name: ({**INGEST, "ratio_ppm": 0}, decode(1)) for name in ("llama", "llama_q8")}}
