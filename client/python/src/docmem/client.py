"""The two clients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Self

from docmem._adapters import Adapters
from docmem._channel import ChannelSettings
from docmem._core import Core
from docmem._documents import Documents
from docmem._operation import Awaiting, Blocking
from docmem._queries import Queries
from docmem._services import Admin, Collections, Trainings
from docmem._transport import AsyncTransport, BlockingTransport, Transport, drive
from docmem.options import (
    RetryFunction,
    RetryPolicy,
    Tls,
    checked_address,
    checked_token,
    is_loopback,
)


class _Connection:
    """Common to both clients."""

    _core: Core

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        tls: Tls | None = None,
        insecure: bool = False,
        retry: RetryPolicy | None = None,
    ) -> None:
        """`address`: HOST:PORT; None: DOCMEM_ADDRESS, else 127.0.0.1:7600. `token`: None: that in
        `token_file`, else DOCMEM_TOKEN. `tls`: None: plain text; a token is then sent to loopback
        only, or anywhere with `insecure`, for a network that itself keeps others from reading
        along. ValueError where one is malformed or wouldn't be safe; OSError where a file can't be
        read."""
        address, token = checked_address(address), checked_token(token, token_file)
        if token and not tls and not insecure and not is_loopback(address):
            raise ValueError(
                f"the token would go to {address} in plain text; use tls=, or insecure=True where "
                "the network itself keeps others from reading along"
            )
        settings = ChannelSettings(address, None)
        if tls:
            settings = ChannelSettings(address, tls.credentials(), tls.server_name)
        transport = self._transport(settings)
        self._bind(Core(transport, address, token, retry or RetryPolicy()))

    def with_options(
        self, *, timeout: float | None = None, on_retry: RetryFunction | None = None
    ) -> Self:
        """A client on the same connection whose every call has at most `timeout` seconds, all tries
        together (None: the call's default; inf: no end), and tells `on_retry` of each wait."""
        other = object.__new__(type(self))
        other._bind(replace(self._core, timeout=timeout, on_retry=on_retry))
        return other

    def _transport(self, settings: ChannelSettings) -> Transport:
        raise NotImplementedError

    def _bind(self, core: Core) -> None:
        """Makes the services."""
        raise NotImplementedError


class _BlockingCollections(Collections, Blocking): ...


class _BlockingDocuments(Documents, Blocking): ...


class _BlockingAdapters(Adapters, Blocking): ...


class _BlockingTrainings(Trainings, Blocking): ...


class _BlockingAdmin(Admin, Blocking): ...


class Client(_Connection, Queries, Blocking):
    """A daemon, for blocking code. Connects at the first call and again where the connection broke.
    Thread-safe. Close it, or use it in a `with`."""

    def _transport(self, settings: ChannelSettings) -> Transport:
        return BlockingTransport(settings)

    def _bind(self, core: Core) -> None:
        self._core = core
        self.collections = _BlockingCollections(core)
        self.documents = _BlockingDocuments(core)
        self.adapters = _BlockingAdapters(core)
        self.trainings = _BlockingTrainings(core)
        self.admin = _BlockingAdmin(core)

    def close(self) -> None:
        """Ends the connection and every open call, also of clients made by `with_options`."""
        drive(self._core.transport.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _AsyncCollections(Collections, Awaiting): ...


class _AsyncDocuments(Documents, Awaiting): ...


class _AsyncAdapters(Adapters, Awaiting): ...


class _AsyncTrainings(Trainings, Awaiting): ...


class _AsyncAdmin(Admin, Awaiting): ...


class AsyncClient(_Connection, Queries, Awaiting):
    """As Client, for asyncio: belongs to the loop of its first call. A cancelled task ends its
    call."""

    def _transport(self, settings: ChannelSettings) -> Transport:
        return AsyncTransport(settings)

    def _bind(self, core: Core) -> None:
        self._core = core
        self.collections = _AsyncCollections(core)
        self.documents = _AsyncDocuments(core)
        self.adapters = _AsyncAdapters(core)
        self.trainings = _AsyncTrainings(core)
        self.admin = _AsyncAdmin(core)

    async def close(self) -> None:
        await self._core.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
