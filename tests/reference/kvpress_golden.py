"""kvpress's CompactorPress with a given sketch and a given kept count, recording what it computes.

All arithmetic is kvpress 0.5.5's own code; only its random sketch and its count are replaced.
"""

from contextlib import contextmanager
from unittest import mock

import torch
from kvpress import CompactorPress

SKETCH_COLUMNS = 48
LAST = 4


class Recorder(CompactorPress):
    """Keeps per layer the z-scores and final scores of the middle and the kept positions.

    sketch [L, G, D, 48] standard normal (kvpress multiplies by 1/sqrt(48)); n = kept tokens per KV head.
    After a prefill: leverage, attention [L, G, M]; scores [L, G, S] (protected ones hold the maximum over
    heads and tokens); kept [L, G, n], ascending.
    """

    def __init__(self, sketch: torch.Tensor, first: int, n: int, ratio: float):
        super().__init__(compression_ratio=ratio, sink_size_start=first, sink_size_end=LAST)
        self.n = n
        self.sketch = sketch
        self.parts = {"leverage": [], "attention": [], "scores": [], "kept": []}
        self._record("_leverage_press", "leverage")
        self._record("_non_causal_press", "attention")

    def _record(self, child: str, name: str) -> None:
        press = getattr(self, child)
        original = press.score

        def score(**arguments):
            result = original(**arguments)
            self.parts[name].append(result[0])
            return result

        press.score = score

    def score(self, module, *arguments):
        with fixed_sketch(self.sketch[module.layer_idx]):
            result = super().score(module, *arguments)
        self.parts["scores"].append(result[0])
        return result

    def compress(self, *arguments):
        with mock.patch("kvpress.presses.scorer_press.compute_n_kept", return_value=self.n):
            result = super().compress(*arguments)
        self.parts["kept"].append(
            self.parts["scores"][-1].topk(self.n, dim=-1).indices.sort(dim=-1).values
        )
        return result

    def stacked(self, name: str) -> torch.Tensor:
        return torch.stack(self.parts[name])


@contextmanager
def fixed_sketch(sketch: torch.Tensor):
    """torch.randn answers with sketch [G, D, 48] as a batch of one, once the shape is right."""

    def randn(*shape, **_):
        assert shape == (1, *sketch.shape), shape
        return sketch[None]

    with mock.patch.object(torch, "randn", randn):
        yield


def kept_count(length: int, head: int, ppm: int) -> int:
    """DocMem's count of kept tokens per KV head: head + (S - head) * (10^6 - ppm) div 10^6."""
    return head + (length - head) * (1_000_000 - ppm) // 1_000_000


def prefill(model, ids: torch.Tensor, press=None):
    """Runs the context ids [S] as kvpress's pipeline does; the DynamicCache, compressed under `press`."""
    from contextlib import nullcontext

    from transformers import DynamicCache

    cache = DynamicCache()
    with press(model) if press else nullcontext():
        model.model(input_ids=ids[None], past_key_values=cache)
    return cache


def gather(cache, kept: torch.Tensor):
    """A cache with only the rows kept [L, G, n] of a full cache, ordered by position."""
    from transformers import DynamicCache

    result = DynamicCache()
    for layer, indices in enumerate(kept):
        rows = indices[None, :, :, None].expand(-1, -1, -1, cache.layers[layer].keys.shape[-1])
        result.update(
            cache.layers[layer].keys.gather(2, rows),
            cache.layers[layer].values.gather(2, rows),
            layer,
        )
    return result
