"""How far a long call is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

_WIDTH = 30


@dataclass(frozen=True)
class Progress:
    phase: str
    """Such as sending, receiving, queued, prefilling."""
    fraction: float | None
    """Part of the phase that is done, 0 to 1; None: not known."""


ProgressFunction = Callable[[Progress], None]
"""Told in the caller's thread or loop; but while the blocking client is sending, in a thread of
gRPC's. It is never told twice at once."""


def phase_name(kind: Any, number: int) -> str:
    """PHASE_BUILDING_CACHE as "building cache"."""
    name: str = kind.Name(number)
    return name.removeprefix("PHASE_").replace("_", " ").lower()


class ProgressLine:
    """A ProgressFunction that rewrites one line of standard error, in a terminal or a notebook;
    elsewhere it shows nothing. Use it in a `with`, which ends the line."""

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty() or "ipykernel" in sys.modules
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        line = progress.phase
        if progress.fraction is not None:
            done = round(progress.fraction * _WIDTH)
            line = f"{line:<12} {'█' * done:·<{_WIDTH}} {progress.fraction:4.0%}"
        if self._shows:
            print(f"\r{line:<{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shows and self._width:
            print(file=sys.stderr)
