"""Streams of bytes that close with their length and digest."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from google.protobuf.message import Message

from docmem import v1
from docmem._transport import Transport
from docmem.errors import DataLossError
from docmem.progress import Progress, ProgressFunction

CHUNK_BYTES = 1 << 20

M = TypeVar("M", bound=Message)


class Sender:
    """Makes the messages of a stream of `request`s, each with one `part`."""

    def __init__(self, request: Any, total_bytes: int, progress: ProgressFunction | None) -> None:
        self._request = request
        self._total_bytes = total_bytes
        self._progress = progress
        self._sent_bytes = 0
        self._digest = hashlib.sha256()

    def chunk(self, data: bytes) -> Any:
        self._digest.update(data)
        self._sent_bytes += len(data)
        if self._progress:
            self._progress(Progress("sending", self._sent_bytes / max(1, self._total_bytes)))
        return self._request(chunk=data)

    def end(self) -> Any:
        end = v1.StreamEnd(total_bytes=self._sent_bytes, sha256=self._digest.hexdigest())
        return self._request(end=end)


class Receiver:
    """Checks received chunks against the StreamEnd that closes them."""

    def __init__(self) -> None:
        self._received_bytes = 0
        self._digest = hashlib.sha256()

    def take(self, chunk: bytes) -> bytes:
        self._digest.update(chunk)
        self._received_bytes += len(chunk)
        return chunk

    def check(self, end: v1.StreamEnd) -> None:
        received = (self._received_bytes, self._digest.hexdigest())
        if received != (end.total_bytes, end.sha256):
            raise DataLossError(
                f"received {received[0]} bytes with SHA-256 {received[1]}, but sent were "
                f"{end.total_bytes} bytes with SHA-256 {end.sha256}: try again"
            )


def pieces(data: bytes) -> Iterable[bytes]:
    return (data[i : i + CHUNK_BYTES] for i in range(0, len(data), CHUNK_BYTES))


async def file_pieces(transport: Transport, path: Path) -> AsyncGenerator[bytes, None]:
    file: BinaryIO = await transport.offload(path.open, "rb")
    with file:
        while data := await transport.offload(file.read, CHUNK_BYTES):
            yield data


def is_end(message: Any) -> bool:
    return bool(message.HasField("end"))


def is_chunk(message: Any) -> bool:
    return bool(message.HasField("chunk"))
