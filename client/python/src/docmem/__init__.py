"""Client of DocMem, a daemon that remembers documents for a language model.

`Client` blocks, `AsyncClient` is for asyncio; both have the same operations. `docmem.v1` has the
messages of the wire contract.
"""

from docmem import v1
from docmem.answer import Answer, AsyncAnswer
from docmem.client import AsyncClient, Client
from docmem.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    Detail,
    DocMemError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
)
from docmem.options import RetryNotice, RetryPolicy, Tls
from docmem.progress import Progress, ProgressLine

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "Answer",
    "AsyncAnswer",
    "AsyncClient",
    "CancelledError",
    "Client",
    "DataLossError",
    "DeadlineExceededError",
    "Detail",
    "DocMemError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "PermissionDeniedError",
    "Progress",
    "ProgressLine",
    "ResourceExhaustedError",
    "RetryNotice",
    "RetryPolicy",
    "Tls",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "v1",
]
