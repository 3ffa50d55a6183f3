"""How a client connects and how patient it is."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc

from docmem.errors import DocMemError

DEFAULT_ADDRESS = "127.0.0.1:7600"
_ADDRESS = re.compile(r"(\[[^\]]+\]|[^:\[\]]+):(\d{1,5})")
_TOKEN = re.compile(r"[!-~]*")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how fast a call is tried again. Which errors allow it at all is part of the
    wire contract (docmem/v1/errors.proto) and fixed; so is the delay where the daemon names one."""

    enabled: bool = True
    max_attempts: int = 5
    """Tries while the connection is lost, the first one included. Where the daemon itself asks for
    patience only the deadline counts."""
    initial_backoff: float = 0.1
    """Seconds; doubles with every try."""
    max_backoff: float = 2.0
    jitter: float = 0.25
    """At most so large a random part is added to every delay: clients don't return in step."""


@dataclass(frozen=True)
class RetryNotice:
    """Told before the wait that precedes another try."""

    why: DocMemError
    delay: float
    """Seconds."""
    attempt: int
    """Number of the try that failed, from 1."""


RetryFunction = Callable[[RetryNotice], None]


@dataclass(frozen=True)
class Tls:
    """Files in PEM; see docs/python.md. A certificate of one's own needs its key."""

    ca: str | Path = ""
    """Whom to trust; empty: the system's authorities."""
    certificate: str | Path = ""
    key: str | Path = ""
    server_name: str = ""
    """Expected in the daemon's certificate; empty: the address's host."""

    def credentials(self) -> grpc.ChannelCredentials:
        if bool(self.certificate) != bool(self.key):
            raise ValueError("tls: certificate and key go together; one of them is missing")
        ca, key, certificate = (
            Path(file).read_bytes() if file else None
            for file in (self.ca, self.key, self.certificate)
        )
        return grpc.ssl_channel_credentials(ca, key, certificate)


def checked_address(address: str | None) -> str:
    """HOST:PORT or [IPV6]:PORT; None: DOCMEM_ADDRESS, else the default, as `docmem` does."""
    address = address or os.environ.get("DOCMEM_ADDRESS") or DEFAULT_ADDRESS
    parts = _ADDRESS.fullmatch(address)
    if not parts or not 1 <= int(parts[2]) <= 65535:
        raise ValueError(f'address "{address}" isn\'t HOST:PORT or [IPV6]:PORT')
    return address


def is_loopback(address: str) -> bool:
    """Of an address that was checked. A name other than localhost could be any machine's."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_token(token: str | None, file: str | Path | None = None) -> str:
    """None: the file's content, else DOCMEM_TOKEN; empty: none."""
    if token is None:
        token = Path(file).read_text().strip() if file else os.environ.get("DOCMEM_TOKEN", "")
    if not _TOKEN.fullmatch(token):
        raise ValueError("the token has characters that no token has")
    return token
