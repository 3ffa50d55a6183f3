"""DocMem's default sketch, written again from its definition in numpy.

Philox4x32-10: Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC'11). Element (KV head,
row, column) of a layer uses the counter (row, column, KV head, layer) and the seed as key; words 0 and 1
become sqrt(-2 ln((w0 + 1) / 2^32)) * cos(2 pi w1 / 2^32) in double, rounded to fp32.
"""

import numpy
import torch

from common import path, save_tensors

MASK = numpy.uint64(0xFFFFFFFF)
SHIFT = numpy.uint64(32)


def philox(counter: list, seed: int) -> list:
    """Four words (uint64 arrays below 2^32) from four counter words."""
    c0, c1, c2, c3 = (numpy.asarray(c, dtype=numpy.uint64) for c in counter)
    key0, key1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = numpy.uint64(0xD2511F53) * c0, numpy.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (
            (p1 >> SHIFT) ^ c1 ^ numpy.uint64(key0),
            p1 & MASK,
            (p0 >> SHIFT) ^ c3 ^ numpy.uint64(key1),
            p0 & MASK,
        )
        key0, key1 = (key0 + 0x9E3779B9) & 0xFFFFFFFF, (key1 + 0xBB67AE85) & 0xFFFFFFFF
    return [c0, c1, c2, c3]


def sketch(layers: int, heads: int, rows: int, columns: int, seed: int) -> torch.Tensor:
    """[L, G, D, columns] fp32."""
    layer, head, row, column = numpy.indices((layers, heads, rows, columns))
    words = philox([row, column, head, layer], seed)
    radius = numpy.sqrt(-2.0 * numpy.log((words[0].astype(numpy.float64) + 1.0) / 2.0**32))
    normal = radius * numpy.cos(2.0 * numpy.pi * (words[1].astype(numpy.float64) / 2.0**32))
    return torch.from_numpy(normal.astype(numpy.float32))


def make() -> None:
    # Known answer of the authors' own test vectors.
    assert [int(w) for w in philox([0, 0, 0, 0], 0)] == [
        0x6627E8D5,
        0xE169C58D,
        0xBC57AC4C,
        0x9B00DBD8,
    ]
    save_tensors(
        path("scorer", "sketch.safetensors"),
        {f"seed.{seed}": sketch(2, 3, 4, 48, seed) for seed in (0, 7, (5 << 40) + 3)},
    )
