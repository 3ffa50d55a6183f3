"""gRPC's channel as this library wants it, and the generated stubs over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import grpc

from docmem.v1 import (
    adapter_pb2_grpc,
    admin_pb2_grpc,
    collection_pb2_grpc,
    document_pb2_grpc,
    query_pb2_grpc,
    training_pb2_grpc,
)

# As client/internal/retrying_channel.cc has them.
_OPTIONS = (
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # A daemon that comes back should be found at the pace of our own retries.
    ("grpc.initial_reconnect_backoff_ms", 100),
    # Despite its name also the time one attempt may take: a busy or distant daemon needs it.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_retries", 0),
    # A variable meant for web pages must not send loopback calls elsewhere.
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True)
class ChannelSettings:
    address: str
    credentials: grpc.ChannelCredentials | None
    """None: plain text."""
    server_name: str = ""
    """Expected in the server's certificate; empty: the address's host."""

    def open(self, form: Any) -> Any:
        """`form`: the module grpc or grpc.aio."""
        agent = f"docmem-python/{metadata.version('docmem')}"
        options: list[tuple[str, Any]] = [*_OPTIONS, ("grpc.primary_user_agent", agent)]
        if self.credentials is None:
            return form.insecure_channel(self.address, options=options)
        if self.server_name:
            options.append(("grpc.ssl_target_name_override", self.server_name))
        return form.secure_channel(self.address, self.credentials, options=options)


_SERVICES: dict[str, Callable[[Any], Any]] = {
    "Adapter": adapter_pb2_grpc.AdapterServiceStub,
    "Admin": admin_pb2_grpc.AdminServiceStub,
    "Collection": collection_pb2_grpc.CollectionServiceStub,
    "Document": document_pb2_grpc.DocumentServiceStub,
    "Query": query_pb2_grpc.QueryServiceStub,
    "Training": training_pb2_grpc.TrainingServiceStub,
}


class Stubs:
    """Looks calls up by name, such as Document.Get."""

    def __init__(self, channel: Any) -> None:
        self._stubs = {name: make(channel) for name, make in _SERVICES.items()}

    def __getitem__(self, method: str) -> Any:
        service, name = method.split(".")
        return getattr(self._stubs[service], name)
