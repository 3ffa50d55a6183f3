"""Clients that send too much: huge headers, compressed bombs, streams without an end."""

import time

import grpc
import pytest
from client import ingest_messages, refused
from daemon import MEMORY_SLACK, SERVING, eventually, scaled
from stubs import v1
from texts import document

MIB = 1 << 20
GROWTH = 96 * MIB * MEMORY_SLACK


@pytest.fixture(scope="module")
def client(daemon):
    client = daemon.client()
    client.ingest(document("d"), "d")
    return client


@pytest.fixture(autouse=True)
def goes_on(daemon, client):
    yield
    eventually(lambda: client.status().queue.building == 0)
    assert client.ask("d", max_tokens=2).finished
    assert daemon.readiness() == SERVING


def code_of(call):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code()


@pytest.mark.parametrize("metadata", [
    [("x-huge", "h" * MIB)],
    [(f"x-{i}", "h" * 100) for i in range(2000)],
    [("authorization", "Bearer " + "t" * MIB)],
    [("traceparent", "00-" + "a" * MIB)],
], ids=["one value", "many", "token", "trace"])
def test_huge_headers_are_refused(daemon, client, metadata):
    before = daemon.resident_bytes()
    stub = daemon.client()
    for _ in range(scaled(20, 500)):
        # By its stream, or with its whole connection when more came than gRPC reads.
        code = code_of(lambda: stub.admin.GetStatus(v1.GetStatusRequest(), metadata=metadata))
        assert code in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
    assert daemon.resident_bytes() < before + GROWTH


def test_a_compressed_bomb_is_refused_before_it_unfolds(daemon, client):
    # A thousandth on the wire; gRPC would look at the limit of a message only behind unfolding it.
    before = daemon.peak_bytes()
    bomb = v1.GetDocumentRequest(document="d" * (256 * MIB))
    packed = daemon.client(options=[("grpc.max_send_message_length", -1)])
    for _ in range(scaled(2, 10)):
        code = code_of(lambda: packed.documents.Get(bomb, compression=grpc.Compression.Gzip))
        assert code == grpc.StatusCode.UNIMPLEMENTED
    assert daemon.peak_bytes() < before + GROWTH


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_messages_publish_nothing(client, compression):
    messages = iter(ingest_messages(document("packed"), "packed"))
    code = code_of(lambda: [*client.documents.Ingest(messages, compression=compression)])
    assert code == grpc.StatusCode.UNIMPLEMENTED
    refused(lambda: client.document("packed"), "NOT_FOUND", "DOCUMENT_NOT_FOUND")


def test_a_stream_of_nothing_ends_at_its_deadline_and_leaves_no_trace(daemon, client):
    before = daemon.resident_bytes()

    def forever():
        yield next(ingest_messages(document("x"), "x"))
        while True:
            yield v1.IngestRequest(chunk=b"")

    began = time.monotonic()
    code = code_of(lambda: [*client.documents.Ingest(forever(), timeout=scaled(3, 60))])
    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - began < scaled(3, 60) + 20
    refused(lambda: client.document("x"), "NOT_FOUND", "DOCUMENT_NOT_FOUND")
    assert daemon.resident_bytes() < before + GROWTH
