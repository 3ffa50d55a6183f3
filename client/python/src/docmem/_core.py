"""One call with its header, deadline and tries, over either transport."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import grpc

from docmem import v1
from docmem._retry import Tries
from docmem._transport import Metadata, Outgoing, Stop, Transport
from docmem.errors import CancelledError, DocMemError, UnavailableError, error_of, lost_connection
from docmem.options import RetryFunction, RetryNotice, RetryPolicy

QUESTION_S = 120.0
LONG_S = 3600.0
SHORT_S = 30.0

_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
# gRPC fails calls at once between its own attempts to connect, also where the daemon is back
# meanwhile. A call that isn't repeated waits so long for a connection when the last one was lost.
_CONNECT_S = 1.0


@dataclass(frozen=True)
class Call:
    """What is fixed about a call before its options."""

    method: str
    """Service and name, such as Document.Get."""
    safe: bool = False
    """It may happen twice without harm."""
    timeout: float = SHORT_S
    """Seconds, all tries together, unless the caller says otherwise; inf: none."""
    document: str = ""
    """Value of docmem-document, by which routers keep a document on one replica; empty: none."""


def document_header(collection: str, document: str) -> str:
    """Empty where either isn't a valid id: the daemon refuses the request anyway."""
    collection = collection or "default"
    valid = _ID.fullmatch(collection) and _ID.fullmatch(document)
    return f"{collection}/{document}" if valid else ""


def _never(_: Any) -> bool:
    return False


@dataclass
class _Link:
    lost: bool = False
    """The last call found no connection or lost it."""


@dataclass(frozen=True)
class Core:
    """What all calls of a client share."""

    transport: Transport
    address: str
    token: str = field(repr=False)
    retry: RetryPolicy
    timeout: float | None = None
    on_retry: RetryFunction | None = None
    link: _Link = field(default_factory=_Link)

    async def unary(self, call: Call, outgoing: Outgoing) -> Any:
        tries = self._tries(call)
        while True:
            await self._reconnect(call, tries)
            try:
                reply = await self.transport.unary(
                    call.method, outgoing, _grpc_timeout(tries), self._metadata(call)
                )
                self.link.lost = False
                return reply
            except grpc.RpcError as failure:
                error = error_of(failure, self.address)
            await self._wait(tries, error, False, Stop())

    async def stream(
        self,
        call: Call,
        outgoing: Outgoing,
        last: Callable[[Any], bool],
        delivers: Callable[[Any], bool] = _never,
        stop: Stop | None = None,
        before_try: Callable[[], None] | None = None,
    ) -> AsyncGenerator[Any, None]:
        """`last`: a message that ends the stream; without one it was cut off. `delivers`: one after
        which the call isn't tried again."""
        stop = stop or Stop()
        tries = self._tries(call)
        while True:
            await self._reconnect(call, tries)
            complete = delivered = False
            if before_try:
                before_try()
            incoming = await self.transport.stream(
                call.method, outgoing, _grpc_timeout(tries), self._metadata(call)
            )
            stop.attach(incoming.cancel)
            try:
                async for message in incoming:
                    complete = complete or last(message)
                    delivered = delivered or delivers(message)
                    yield message
                if complete:
                    self.link.lost = False
                    return
                error: DocMemError = lost_connection(self.address, "the stream ended early")
            except grpc.RpcError as failure:
                error = error_of(failure, self.address)
            finally:
                incoming.cancel()  # where the caller has left; else without effect
            if stop.requested:
                raise CancelledError("the caller cancelled the call")
            await self._wait(tries, error, delivered, stop)

    def _tries(self, call: Call) -> Tries:
        timeout = call.timeout if self.timeout is None else self.timeout
        return Tries(self.retry, call.safe, timeout)

    def _metadata(self, call: Call) -> Metadata:
        metadata = []
        if call.document:
            metadata.append(("docmem-document", call.document))
        if self.token:
            metadata.append(("authorization", f"Bearer {self.token}"))
        return tuple(metadata)

    async def _reconnect(self, call: Call, tries: Tries) -> None:
        if call.safe or not self.link.lost:
            return
        # Half of what is left at most, so that there is time to say why.
        patience = min(_CONNECT_S, tries.left() / 2)
        with suppress(grpc.RpcError):  # then it is the call itself that fails
            await self.transport.unary(
                "Admin.GetStatus",
                v1.GetStatusRequest(),
                timeout=patience,
                metadata=self._metadata(call),
                wait_for_ready=True,
            )

    async def _wait(self, tries: Tries, error: DocMemError, delivered: bool, stop: Stop) -> None:
        """Until the next try; raises `error` where there is none."""
        self.link.lost = isinstance(error, UnavailableError) and error.lost
        delay = tries.delay_after(error, delivered)
        if delay is None:
            raise error
        if self.on_retry:
            self.on_retry(RetryNotice(error, delay, tries.attempt))
        await self.transport.sleep(delay, stop)
        if stop.requested:
            raise CancelledError("the caller cancelled the call")
        tries.attempt += 1


def _grpc_timeout(tries: Tries) -> float | None:
    left = tries.left()
    return None if math.isinf(left) else left
