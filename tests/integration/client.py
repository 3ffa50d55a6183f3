"""A gRPC client of docmemd that shares no code with the project: stubs made from the protos."""

import collections
import hashlib
from dataclasses import dataclass, field

import grpc
from google.rpc import error_details_pb2, status_pb2
from stubs import SERVICES, v1

TIMEOUT_S = 90
CHUNK_BYTES = 64 * 1024
QUESTION = "Which door is blue?"


class _CallDetails(
    collections.namedtuple(
        "_CallDetails", "method timeout metadata credentials wait_for_ready compression"
    ),
    grpc.ClientCallDetails,
):
    pass


class _Bounded(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Gives every call that has no timeout one, and every call the token, if there is one."""

    def __init__(self, token):
        self._metadata = [("authorization", f"Bearer {token}")] if token else []

    def intercept_unary_unary(self, continuation, details, request):
        bounded = _CallDetails(
            details.method,
            TIMEOUT_S if details.timeout is None else details.timeout,
            [*(details.metadata or ()), *self._metadata],
            details.credentials,
            details.wait_for_ready,
            details.compression,
        )
        return continuation(bounded, request)

    intercept_unary_stream = intercept_unary_unary
    intercept_stream_unary = intercept_unary_unary
    intercept_stream_stream = intercept_unary_unary


@dataclass
class Answer:
    started: object = None
    text: str = ""
    tokens: list = field(default_factory=list)
    log_probabilities: list = field(default_factory=list)
    progress: list = field(default_factory=list)
    finished: object = None


def memory(document, **selection):
    """MemorySelection; `ratio` stands for ratio_ppm."""
    if "ratio" in selection:
        selection["ratio_ppm"] = selection.pop("ratio")
    return v1.MemorySelection(document=document, **selection)


def ask_request(document, question=QUESTION, *, prompt=None, **options):
    """Fields of AskRequest, and of MemorySelection for all others."""
    own = {field.name for field in v1.AskRequest.DESCRIPTOR.fields}
    asked = {name: options.pop(name) for name in own & options.keys()}
    asked.setdefault("max_tokens", 24)
    asked.setdefault("log_probabilities", True)
    return v1.AskRequest(
        memory=memory(document, **options),
        prompt=v1.Prompt(question=question, **(prompt or {})),
        **asked,
    )


def collect(stream):
    """The whole answer; its parts came in the contract's order."""
    answer = Answer()
    for response in stream:
        part = response.WhichOneof("part")
        assert answer.finished is None, f"{part} after Finished"
        if part == "started":
            assert answer.started is None and not answer.text
            answer.started = response.started
        elif part == "progress":
            answer.progress.append(response.progress)
        elif part == "delta":
            assert answer.started is not None
            answer.text += response.delta.text
            for token in response.delta.log_probabilities:
                answer.tokens.append(token.token_id)
                answer.log_probabilities.append(token.log_probability)
        else:
            answer.finished = response.finished
    assert answer.finished is not None
    return answer


def stream_end(data):
    return v1.StreamEnd(total_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def chunks(data, size=CHUNK_BYTES):
    return [data[i : i + size] for i in range(0, len(data), size)]


def ingest_messages(text, document="", *, chunk_bytes=CHUNK_BYTES, end=True, **fields):
    """Fields of IngestHeader, and of IngestOptions for all others."""
    own = {field.name for field in v1.IngestHeader.DESCRIPTOR.fields}
    header = {name: fields.pop(name) for name in own & fields.keys()}
    data = text.encode() if isinstance(text, str) else text
    options = v1.IngestOptions(**fields)
    yield v1.IngestRequest(header=v1.IngestHeader(document=document, options=options, **header))
    for chunk in chunks(data, chunk_bytes):
        yield v1.IngestRequest(chunk=chunk)
    if end:
        yield v1.IngestRequest(end=stream_end(data))


def upload_messages(document, files, *, end=True, **header):
    """`files`: name → bytes, sent in this order."""
    yield v1.UploadAdapterRequest(header=v1.AdapterHeader(document=document, **header))
    for name, data in files.items():
        yield v1.UploadAdapterRequest(file=v1.AdapterFile(name=name, size_bytes=len(data)))
        for chunk in chunks(data):
            yield v1.UploadAdapterRequest(chunk=chunk)
    if end:
        yield v1.UploadAdapterRequest(end=stream_end(b"".join(files.values())))


class Client:
    """Stubs of all services (`collections`, `documents`, …) and the common calls."""

    def __init__(self, address, bounded=True, options=(), token="", credentials=None):
        """Without `bounded` calls have neither timeout nor token. `credentials`: of TLS."""
        own = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
        own += [("grpc.max_receive_message_length", -1)]
        own += options
        if credentials:
            self.channel = grpc.secure_channel(address, credentials, options=own)
        else:
            self.channel = grpc.insecure_channel(address, options=own)
        channel = self.channel
        if bounded:
            channel = grpc.intercept_channel(channel, _Bounded(token))
        self.collections = SERVICES["collection"](channel)
        self.documents = SERVICES["document"](channel)
        self.adapters = SERVICES["adapter"](channel)
        self.trainings = SERVICES["training"](channel)
        self.queries = SERVICES["query"](channel)
        self.admin = SERVICES["admin"](channel)

    def close(self):
        self.channel.close()

    def ask(self, document, question=QUESTION, **options):
        return collect(self.queries.Ask(ask_request(document, question, **options)))

    def score(self, document, answer, question=QUESTION, *, prompt=None, **selection):
        return self.queries.Score(
            v1.ScoreRequest(
                memory=memory(document, **selection),
                prompt=v1.Prompt(question=question, **(prompt or {})),
                answer=answer,
            )
        )

    def ingest(self, text, document="", **fields):
        *progress, last = self.documents.Ingest(ingest_messages(text, document, **fields))
        assert all(message.WhichOneof("part") == "progress" for message in progress)
        assert last.WhichOneof("part") == "result"
        return last.result

    def build(self, document, **fields):
        *progress, last = self.documents.BuildCache(
            v1.BuildCacheRequest(document=document, **fields)
        )
        assert all(message.WhichOneof("part") == "progress" for message in progress)
        assert last.WhichOneof("part") == "result"
        return last.result

    def upload(self, document, files, **header):
        return self.adapters.Upload(upload_messages(document, files, **header))

    def download(self, document, **fields):
        """File name → bytes; length and digest of the whole stream are checked."""
        files, end = {}, None
        for message in self.adapters.Download(
            v1.DownloadAdapterRequest(document=document, **fields)
        ):
            assert end is None
            part = message.WhichOneof("part")
            if part == "file":
                name, size = message.file.name, message.file.size_bytes
                files[name] = (size, b"")
            elif part == "chunk":
                files[name] = (size, files[name][1] + message.chunk)
            else:
                end = message.end
        assert all(size == len(data) for size, data in files.values())
        assert end == stream_end(b"".join(data for _, data in files.values()))
        return {name: data for name, (_, data) in files.items()}

    def train(self, document, pairs=(), **options):
        """Starts a training; `pairs` are (question, answer)."""
        qa = [v1.QaPair(question=question, answer=answer) for question, answer in pairs]
        return self.trainings.Start(v1.StartTrainingRequest(
            document=document, options=v1.TrainingOptions(qa=qa, **options)))

    def training(self, job_id):
        return self.trainings.Get(v1.GetTrainingJobRequest(job_id=job_id))

    def watch_training(self, job_id):
        """All jobs and steps until the training has ended."""
        events = [*self.trainings.Watch(v1.WatchTrainingRequest(job_id=job_id))]
        jobs = [event.job for event in events if event.WhichOneof("event") == "job"]
        steps = [event.step for event in events if event.WhichOneof("event") == "step"]
        return jobs, steps

    def text(self, document, **fields):
        *parts, last = self.documents.GetText(v1.GetTextRequest(document=document, **fields))
        data = b"".join(part.chunk for part in parts)
        assert last.end == stream_end(data)
        return data.decode()

    def document(self, document, **fields):
        return self.documents.Get(v1.GetDocumentRequest(document=document, **fields))

    def delete(self, document, **fields):
        return self.documents.Delete(v1.DeleteDocumentRequest(document=document, **fields))

    def status(self):
        return self.admin.GetStatus(v1.GetStatusRequest())

    def residents(self):
        return list(self.admin.ListResident(v1.ListResidentRequest(page_size=1000)).items)


@dataclass
class Refusal:
    """A failed call as google.rpc details tell it."""

    code: grpc.StatusCode
    message: str
    reason: str = ""
    metadata: dict = field(default_factory=dict)
    field: str = ""
    resource: tuple = ()
    retry: bool = False


def refusal_of(error):
    """Reads the details of a grpc.RpcError, which must be as the contract says."""
    refusal = Refusal(error.code(), error.details() or "")
    trailers = {key: value for key, value in error.trailing_metadata() or ()}
    details = trailers.get("grpc-status-details-bin")
    if details is None:
        return refusal
    assert len(refusal.message.encode()) <= 1024, refusal.message
    assert len(details) <= 4096 + 1024
    status = status_pb2.Status.FromString(details)
    assert status.code == refusal.code.value[0]
    for detail in status.details:
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            info = error_details_pb2.ErrorInfo.FromString(detail.value)
            assert info.domain == "docmem"
            assert info.reason in v1.ErrorReason.keys()
            refusal.reason, refusal.metadata = info.reason, dict(info.metadata)
        elif detail.Is(error_details_pb2.BadRequest.DESCRIPTOR):
            bad = error_details_pb2.BadRequest.FromString(detail.value)
            refusal.field = bad.field_violations[0].field
        elif detail.Is(error_details_pb2.ResourceInfo.DESCRIPTOR):
            info = error_details_pb2.ResourceInfo.FromString(detail.value)
            refusal.resource = (info.resource_type, info.resource_name)
        elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            refusal.retry = True
    return refusal


def refusal(call):
    """Runs `call`, which must fail with a status; a stream is read to its end."""
    try:
        result = call()
        if hasattr(result, "__next__"):
            collections.deque(result, maxlen=0)
    except grpc.RpcError as error:
        return refusal_of(error)
    raise AssertionError(f"the call succeeded: {str(result)[:300]}")


def refused(call, code, reason, field=None):
    """`call` must be refused in this way; returns the refusal for more checks."""
    why = refusal(call)
    assert (why.code.name, why.reason) == (code, reason), why
    if field is not None:
        assert why.field == field, why
    return why
