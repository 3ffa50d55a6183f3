"""Parts of requests that several operations take as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from docmem import v1
from docmem._core import document_header

MILLION = 1_000_000


def ppm(ratio: float) -> int:
    """A compression ratio, 0 to 1, as the contract counts it."""
    if not 0 <= ratio <= 1:
        raise ValueError(f"ratio {ratio} isn't in 0 to 1, the part of the tokens that is evicted")
    return round(ratio * MILLION)


def ppms(ratios: Sequence[float]) -> list[int]:
    return [ppm(ratio) for ratio in ratios]


class Selection(TypedDict, total=False):
    """Which memories answer. What isn't given is chosen by the daemon: see MemorySelection."""

    collection: str
    mode: v1.Mode
    ratio: float
    cache_id: str
    profile: v1.Profile
    build_if_missing: bool
    adapter_version: int
    adapter_scope: v1.AdapterScope
    allow_adapter_mismatch: bool


def memory(document: str, selection: Selection) -> v1.MemorySelection:
    if "ratio" in selection and "cache_id" in selection:
        raise ValueError("ratio and cache_id both name a cache: give one of them")
    fields: dict[str, Any] = dict(selection)
    if "ratio" in fields:
        fields["ratio_ppm"] = ppm(fields.pop("ratio"))
    return v1.MemorySelection(document=document, **fields)


def prompt(
    question: str, instruction: str = "", history: Iterable[tuple[str, str]] = ()
) -> v1.Prompt:
    """`history`: earlier questions with their answers, oldest first."""
    turns = [v1.Turn(question=asked, answer=answered) for asked, answered in history]
    return v1.Prompt(question=question, instruction=instruction, history=turns)


# What a call needs to know of its request.


def header_of(request: Any) -> str:
    return document_header(request.collection, request.document)


def header_of_only(request: v1.PrefetchRequest) -> str:
    """Of a request for several documents there is none."""
    if len(request.documents) != 1:
        return ""
    return document_header(request.collection, request.documents[0])


def allows_missing(request: Any) -> bool:
    return bool(request.allow_missing)


def has_no_revision(request: Any) -> bool:
    return not request.revision
