"""A server whose answers a test writes down, of every service and whatever their form."""

import dataclasses
import threading
from concurrent import futures
from dataclasses import dataclass

import grpc
from google.protobuf import any_pb2, duration_pb2, empty_pb2
from google.rpc import error_details_pb2, status_pb2


@dataclass
class Refusal:
    """A failure as docmemd says it; with another `domain`, as another server does."""

    code: grpc.StatusCode
    reason: str = ""
    message: str = "refused"
    field: str = ""
    resource: tuple = ()
    delay: float | None = None
    metadata: dict = dataclasses.field(default_factory=dict)
    domain: str = "docmem"

    def details(self):
        info = error_details_pb2.ErrorInfo(
            reason=self.reason, domain=self.domain, metadata=self.metadata)
        parts = [info] if self.reason else []
        if self.field:
            violation = error_details_pb2.BadRequest.FieldViolation(field=self.field)
            parts.append(error_details_pb2.BadRequest(field_violations=[violation]))
        if self.resource:
            kind, name = self.resource
            parts.append(error_details_pb2.ResourceInfo(resource_type=kind, resource_name=name))
        if self.delay is not None:
            wait = duration_pb2.Duration()
            wait.FromNanoseconds(int(self.delay * 1e9))
            parts.append(error_details_pb2.RetryInfo(retry_delay=wait))
        status = status_pb2.Status(code=self.code.value[0], message=self.message)
        for part in parts:
            packed = any_pb2.Any()
            packed.Pack(part)
            status.details.append(packed)
        return status.SerializeToString()


# A connection that breaks, as gRPC reports it.
LOST = Refusal(grpc.StatusCode.UNAVAILABLE, message="Socket closed")


class Hang:
    """Says nothing until the client leaves."""


@dataclass
class Try:
    """One call that came in."""

    method: str
    metadata: dict
    requests: list
    seconds: float  # until its deadline
    gone: threading.Event = dataclasses.field(default_factory=threading.Event)


class FakeDaemon(grpc.GenericRpcHandler):
    """`script` has, for each call in turn, a list of messages that may end in a Refusal or a Hang;
    the last one is for all that follow."""

    def __init__(self, address="127.0.0.1:0", credentials=None):
        self.script = [[empty_pb2.Empty()]]  # an empty message is one of every kind
        self.tries = []
        self._lock = threading.Lock()
        self._server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[self])
        if credentials:
            port = self._server.add_secure_port(address, credentials)
        else:
            port = self._server.add_insecure_port(address)
        self.address = f"127.0.0.1:{port}"

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *_):
        self._server.stop(0).wait()

    def service(self, handler_call_details):
        def answer(requests, context):
            metadata = dict(context.invocation_metadata())
            seconds = context.time_remaining()
            call = Try(handler_call_details.method, metadata, list(requests), seconds)
            context.add_callback(call.gone.set)
            with self._lock:
                parts = self.script[min(len(self.tries), len(self.script) - 1)]
                self.tries.append(call)
            for part in parts:
                if isinstance(part, Hang):
                    call.gone.wait(60)
                elif isinstance(part, Refusal):
                    details = (("grpc-status-details-bin", part.details()),)
                    context.set_trailing_metadata(details if part is not LOST else ())
                    context.abort(part.code, part.message)
                else:
                    yield part.SerializeToString()

        return grpc.stream_stream_rpc_method_handler(answer)
