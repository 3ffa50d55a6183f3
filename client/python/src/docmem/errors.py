"""Exceptions: one class for each code of gRPC, with what docmemd says beyond it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

_DETAILS = "grpc-status-details-bin"
_DOMAIN = "docmem"
# gRPC's own codes for a connection that broke; proxies use the last two for it.
_MAY_BE_LOST = (
    grpc.StatusCode.OK,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
)


@dataclass(frozen=True)
class Detail:
    """What an error says beyond code and message; see docmem/v1/errors.proto."""

    reason: str = ""
    """Name of a docmem.v1.ErrorReason; empty: docmemd didn't say this."""
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    field: str = ""
    """Of the request, that is to blame; empty: none."""
    resource_type: str = ""
    resource_name: str = ""
    retry_delay: float | None = None
    """Seconds; set where trying again can help."""


class DocMemError(Exception):
    """A call failed. The subclasses tell the codes apart."""

    code = grpc.StatusCode.UNKNOWN

    def __init__(self, message: str, detail: Detail = Detail()) -> None:
        super().__init__(message, detail)
        self.message = message
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.message} [{self.reason or self.code.name}]"

    @property
    def reason(self) -> str:
        return self.detail.reason

    @property
    def field(self) -> str:
        return self.detail.field

    @property
    def retry_delay(self) -> float | None:
        return self.detail.retry_delay


class CancelledError(DocMemError):
    code = grpc.StatusCode.CANCELLED


class InvalidArgumentError(DocMemError):
    code = grpc.StatusCode.INVALID_ARGUMENT


class DeadlineExceededError(DocMemError):
    code = grpc.StatusCode.DEADLINE_EXCEEDED


class NotFoundError(DocMemError):
    code = grpc.StatusCode.NOT_FOUND


class AlreadyExistsError(DocMemError):
    code = grpc.StatusCode.ALREADY_EXISTS


class PermissionDeniedError(DocMemError):
    code = grpc.StatusCode.PERMISSION_DENIED


class ResourceExhaustedError(DocMemError):
    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class FailedPreconditionError(DocMemError):
    code = grpc.StatusCode.FAILED_PRECONDITION


class AbortedError(DocMemError):
    code = grpc.StatusCode.ABORTED


class UnimplementedError(DocMemError):
    code = grpc.StatusCode.UNIMPLEMENTED


class InternalError(DocMemError):
    code = grpc.StatusCode.INTERNAL


class UnavailableError(DocMemError):
    code = grpc.StatusCode.UNAVAILABLE

    @property
    def lost(self) -> bool:
        """The connection broke: no word of docmemd ended the call."""
        return not self.reason


class DataLossError(DocMemError):
    code = grpc.StatusCode.DATA_LOSS


class UnauthenticatedError(DocMemError):
    code = grpc.StatusCode.UNAUTHENTICATED


_CLASSES = {kind.code: kind for kind in DocMemError.__subclasses__()}


def lost_connection(address: str, what: str) -> UnavailableError:
    return UnavailableError(f"no connection to {address}: {what}")


def error_of(failure: grpc.RpcError, address: str) -> DocMemError:
    """The one place where gRPC's errors become ours."""
    code, message = failure.code(), failure.details() or ""
    trailers: Any = failure.trailing_metadata() or ()
    detail = _read(dict(trailers).get(_DETAILS, b""))
    if not detail.reason:
        if code in _MAY_BE_LOST:
            return lost_connection(address, message or "the stream ended early")
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            message = f"no answer from {address} within the deadline"
    return _CLASSES.get(code, DocMemError)(message, detail)


def _read(details: str | bytes) -> Detail:
    try:
        status = status_pb2.Status.FromString(details)
    except DecodeError:  # another server's
        return Detail()
    found: dict[str, object] = {}
    info = error_details_pb2.ErrorInfo()
    bad = error_details_pb2.BadRequest()
    resource = error_details_pb2.ResourceInfo()
    retry = error_details_pb2.RetryInfo()
    for packed in status.details:
        if packed.Unpack(info) and info.domain == _DOMAIN:
            found |= {"reason": info.reason, "metadata": dict(info.metadata)}
        elif packed.Unpack(bad) and bad.field_violations:
            found["field"] = bad.field_violations[0].field
        elif packed.Unpack(resource):
            found["resource_type"] = resource.resource_type
            found["resource_name"] = resource.resource_name
        elif packed.Unpack(retry):
            found["retry_delay"] = retry.retry_delay.ToTimedelta().total_seconds()
    return Detail(**found)  # type: ignore[arg-type]
