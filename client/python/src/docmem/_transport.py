"""gRPC in its two forms behind one face, so that everything above is written once.

All of the library is coroutines over a Transport. The asyncio client awaits them. The blocking
client's transport blocks inside its methods instead of waiting, so that its coroutines run through
at their first step: see `drive`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from functools import cached_property
from typing import Any, Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from docmem._channel import ChannelSettings, Stubs

T = TypeVar("T")
Metadata = tuple[tuple[str, str], ...]
# A request, or what makes the messages of a stream of them.
Outgoing = Message | Callable[[], AsyncGenerator[Message, None]]


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine over a BlockingTransport, which never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    work.close()
    raise RuntimeError("a coroutine of the blocking client waited")


class Stop:
    """A wish to end a call, from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._cancel: Callable[[], object] = lambda: None

    def request(self) -> None:
        self._event.set()
        self._cancel()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        self._event.wait(seconds)

    def attach(self, cancel: Callable[[], object]) -> None:
        """`cancel` ends the call's present try."""
        self._cancel = cancel
        if self.requested:
            cancel()


class Incoming(Protocol):
    """The messages of one call; grpc.RpcError where it fails."""

    def __aiter__(self) -> AsyncIterator[Any]: ...
    def cancel(self) -> object: ...


class Transport(Protocol):
    async def unary(
        self,
        method: str,
        outgoing: Outgoing,
        timeout: float | None,
        metadata: Metadata,
        wait_for_ready: bool = False,
    ) -> Any:
        """One reply. grpc.RpcError, or what went wrong while the messages were made."""

    async def stream(
        self, method: str, outgoing: Outgoing, timeout: float | None, metadata: Metadata
    ) -> Incoming: ...
    async def sleep(self, seconds: float, stop: Stop) -> None: ...
    async def offload(self, function: Callable[..., T], *arguments: Any) -> T:
        """Runs what blocks on files."""
        raise NotImplementedError

    async def close(self) -> None: ...


class _Pulled(Iterator[Message]):
    """Messages for gRPC's thread. One that can't be made ends the stream, without its end message,
    and is kept: gRPC would only log it."""

    def __init__(self, source: AsyncGenerator[Message, None]) -> None:
        self._source = source
        self.failure: Exception | None = None

    def __next__(self) -> Message:
        try:
            return drive(self._source.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None
        except Exception as failure:
            self.failure = failure
            raise StopIteration from None


class _BlockingIncoming(AsyncIterator[Any]):
    def __init__(self, call: Any, source: Message | _Pulled) -> None:
        self._call = call
        self._source = source
        self.cancel: Callable[[], object] = call.cancel

    async def __anext__(self) -> Any:
        try:
            return next(self._call)
        except StopIteration:
            raise _failure_of(self._source) or StopAsyncIteration from None
        except grpc.RpcError as error:
            raise _failure_of(self._source) or error from None


class BlockingTransport:
    def __init__(self, settings: ChannelSettings) -> None:
        self._channel = settings.open(grpc)
        self._stubs = Stubs(self._channel)

    async def unary(
        self,
        method: str,
        outgoing: Outgoing,
        timeout: float | None,
        metadata: Metadata,
        wait_for_ready: bool = False,
    ) -> Any:
        source = outgoing if isinstance(outgoing, Message) else _Pulled(outgoing())
        call = self._stubs[method].future(
            source, timeout=timeout, metadata=metadata, wait_for_ready=wait_for_ready
        )
        try:
            return call.result()
        except grpc.RpcError as error:
            raise _failure_of(source) or error from None
        finally:
            call.cancel()  # for what else comes out of the wait, such as Ctrl-C

    async def stream(
        self, method: str, outgoing: Outgoing, timeout: float | None, metadata: Metadata
    ) -> Incoming:
        source = outgoing if isinstance(outgoing, Message) else _Pulled(outgoing())
        call = self._stubs[method](source, timeout=timeout, metadata=metadata)
        return _BlockingIncoming(call, source)

    async def sleep(self, seconds: float, stop: Stop) -> None:
        stop.wait(seconds)

    async def offload(self, function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)

    async def close(self) -> None:
        self._channel.close()


class _Guarded:
    """As _Pulled, for asyncio."""

    def __init__(self, source: AsyncGenerator[Message, None]) -> None:
        self._source = source
        self.failure: Exception | None = None

    async def __aiter__(self) -> AsyncIterator[Message]:
        try:
            async for message in self._source:
                yield message
        except Exception as failure:
            self.failure = failure


class _AsyncIncoming(AsyncIterator[Any]):
    def __init__(self, call: Any, source: Message | _Guarded) -> None:
        self._messages = aiter(call)
        self._source = source
        self._cancelled = False
        self._call = call

    async def __anext__(self) -> Any:
        try:
            return await anext(self._messages)
        except StopAsyncIteration:
            raise _failure_of(self._source) or StopAsyncIteration from None
        except grpc.RpcError as error:
            raise _failure_of(self._source) or error from None
        except asyncio.CancelledError:
            # gRPC says so too where the call was cancelled and not the task.
            if not self._cancelled:
                raise
            raise StopAsyncIteration from None

    def cancel(self) -> None:
        self._cancelled = True
        self._call.cancel()


class AsyncTransport:
    def __init__(self, settings: ChannelSettings) -> None:
        self._settings = settings

    @cached_property
    def _channel(self) -> Any:
        return self._settings.open(grpc.aio)  # inside the loop that uses it

    @cached_property
    def _stubs(self) -> Stubs:
        return Stubs(self._channel)

    async def unary(
        self,
        method: str,
        outgoing: Outgoing,
        timeout: float | None,
        metadata: Metadata,
        wait_for_ready: bool = False,
    ) -> Any:
        source = outgoing if isinstance(outgoing, Message) else _Guarded(outgoing())
        try:
            return await self._stubs[method](
                source, timeout=timeout, metadata=metadata, wait_for_ready=wait_for_ready
            )
        except grpc.RpcError as error:
            raise _failure_of(source) or error from None

    async def stream(
        self, method: str, outgoing: Outgoing, timeout: float | None, metadata: Metadata
    ) -> Incoming:
        source = outgoing if isinstance(outgoing, Message) else _Guarded(outgoing())
        call = self._stubs[method](source, timeout=timeout, metadata=metadata)
        return _AsyncIncoming(call, source)

    async def sleep(self, seconds: float, stop: Stop) -> None:
        await asyncio.sleep(seconds)

    async def offload(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.to_thread(function, *arguments)

    async def close(self) -> None:
        await self._channel.close()


def _failure_of(source: Message | _Pulled | _Guarded) -> Exception | None:
    return None if isinstance(source, Message) else source.failure
