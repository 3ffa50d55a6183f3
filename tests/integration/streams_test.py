"""Client streams that are cut, disordered, undecodable, too large, or wrong in their end."""

import hashlib

import grpc
import pytest
from client import ingest_messages, refusal_of, refused, stream_end, upload_messages
from daemon import eventually, scaled
from folders import CONFIG, TENSORS, adapter, model
from stubs import DESCRIPTORS, v1
from texts import document

INCOMPLETE = ("INVALID_ARGUMENT", "STREAM_INCOMPLETE")
CHECKSUM = ("INVALID_ARGUMENT", "CHECKSUM_MISMATCH")
TEXT = document("stream")
MIB = 1 << 20


@pytest.fixture(scope="module")
def client(daemon):
    client = daemon.client()
    client.ingest(document("d"), "d")
    return client


@pytest.fixture(autouse=True)
def nothing_published(client):
    """Whatever a test sends: no document `x`, no adapter of `d`, nothing on the way."""
    yield
    eventually(lambda: client.status().queue.building == 0)
    refused(lambda: client.document("x"), "NOT_FOUND", "DOCUMENT_NOT_FOUND")
    assert client.document("d").adapter_count == 0
    assert client.ask("d", max_tokens=2).finished


def ingest(client, messages):
    return lambda: client.documents.Ingest(iter(messages))


def upload(client, messages):
    return lambda: client.adapters.Upload(iter(messages))


def whole():
    return [*ingest_messages(TEXT, "x", chunk_bytes=100)]


def end(total=None, sha256=None):
    correct = stream_end(TEXT.encode())
    return v1.IngestRequest(end=v1.StreamEnd(
        total_bytes=correct.total_bytes if total is None else total,
        sha256=correct.sha256 if sha256 is None else sha256))


CUT = {
    "nothing at all": lambda m: [],
    "no end": lambda m: m[:-1],
    "no chunk and no end": lambda m: m[:1],
    "no header": lambda m: m[1:],
    "only an end": lambda m: m[-1:],
    "two headers": lambda m: [m[0], *m],
    "a chunk before the header": lambda m: [m[1], *m],
    "an empty message": lambda m: [m[0], v1.IngestRequest(), *m[1:]],
}


@pytest.mark.parametrize("name", CUT)
def test_an_ingestion_out_of_order_publishes_nothing(client, name):
    with pytest.raises(grpc.RpcError) as error:
        list(ingest(client, CUT[name](whole()))())
    why = refusal_of(error.value)
    assert why.code == grpc.StatusCode.INVALID_ARGUMENT
    assert why.reason in ("STREAM_INCOMPLETE", "INVALID_FIELD")


def test_what_comes_behind_the_end_message_isnt_read(client):
    for _ in range(scaled(10, 100)):
        more = [*whole(), whole()[0], v1.IngestRequest()]
        assert [*ingest(client, more)()][-1].result.document.id == "x"
        client.delete("x")


@pytest.mark.parametrize("wrong", [
    {"total": 0}, {"total": len(TEXT) - 1}, {"total": 1 << 63}, {"sha256": ""},
    {"sha256": "0" * 64}, {"sha256": stream_end(TEXT.encode()).sha256.upper()},
    {"sha256": "x" * 100_000},
])
def test_an_end_that_doesnt_fit_publishes_nothing(client, wrong):
    refused(ingest(client, [*whole()[:-1], end(**wrong)]), *CHECKSUM)


def test_lost_and_swapped_chunks_are_noticed(client):
    messages = whole()
    assert len(messages) > 5
    refused(ingest(client, messages[:2] + messages[3:]), *CHECKSUM)
    refused(ingest(client, [messages[0], messages[2], messages[1], *messages[3:]]), *CHECKSUM)


def test_empty_chunks_change_nothing(client):
    messages = whole()
    padded = [messages[0], v1.IngestRequest(chunk=b""), *messages[1:]]
    assert [*ingest(client, padded)()][-1].result.document.id == "x"
    client.delete("x")


def parts():
    return [*upload_messages("d", adapter())]


def part(**fields):
    return v1.UploadAdapterRequest(**fields)


def file_part(name, size):
    return part(file=v1.AdapterFile(name=name, size_bytes=size))


UPLOADS = {
    "nothing at all": (lambda m: [], INCOMPLETE),
    "no end": (lambda m: m[:-1], INCOMPLETE),
    "only a header": (lambda m: m[:1], INCOMPLETE),
    "no header": (lambda m: m[1:], INCOMPLETE),
    "two headers": (lambda m: [m[0], *m], INCOMPLETE),
    "a chunk without a file": (lambda m: [m[0], *m[2:]], INCOMPLETE),
    "an empty message": (lambda m: [m[0], part(), *m[1:]], INCOMPLETE),
    "a lost chunk": (lambda m: m[:-2] + m[-1:], INCOMPLETE),
    "a file cut by the next": (lambda m: [*m[:2], m[3], *m[4:]], INCOMPLETE),
    "more bytes than announced": (lambda m: [*m[:-1], part(chunk=b"x"), m[-1]], None),
    "a wrong total": (lambda m: [*m[:-1], part(end=v1.StreamEnd(
        total_bytes=1, sha256=m[-1].end.sha256))], CHECKSUM),
    "a wrong digest": (lambda m: [*m[:-1], part(end=v1.StreamEnd(
        total_bytes=m[-1].end.total_bytes, sha256="0" * 64))], CHECKSUM),
    "larger than allowed": (lambda m: [m[0], file_part(TENSORS, (1 << 30) + 1)],
                            ("INVALID_ARGUMENT", "LIMIT_EXCEEDED")),
    "sizes that overflow together": (
        lambda m: [m[0], file_part(CONFIG, 0), file_part(TENSORS, (1 << 64) - 1)],
        ("INVALID_ARGUMENT", "LIMIT_EXCEEDED")),
}


@pytest.mark.parametrize("name", UPLOADS)
def test_an_upload_out_of_order_publishes_nothing(client, name):
    change, how = UPLOADS[name]
    if how:
        refused(upload(client, change(parts())), *how)
    else:
        with pytest.raises(grpc.RpcError) as caught:
            upload(client, change(parts()))()
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def raw(client, service, method, messages):
    """Calls a method with messages that are bytes already."""
    path = f"/{service.full_name}/{method.name}"
    streams = ("stream" if method.client_streaming else "unary",
               "stream" if method.server_streaming else "unary")
    call = getattr(client.channel, "_".join(streams))(path)
    return call(iter(messages) if method.client_streaming else messages[0], timeout=30)


UNDECODABLE = [b"\xff" * 40, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05abc"]


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_a_message_that_isnt_one_is_refused_without_effect(client, name):
    before = client.status()
    for method in DESCRIPTORS[name].methods:
        for message in UNDECODABLE:
            with pytest.raises(grpc.RpcError) as caught:
                reply = raw(client, DESCRIPTORS[name], method, [message])
                if method.server_streaming:
                    list(reply)
            assert caught.value.code() != grpc.StatusCode.OK, method.name
    after = client.status()
    assert not after.draining
    assert (after.documents, after.collections, after.adapters) == (
        before.documents, before.collections, before.adapters)


def test_an_undecodable_chunk_looks_like_an_end_and_publishes_nothing(client):
    ingestion = DESCRIPTORS["docmem.v1.DocumentService"].methods_by_name["Ingest"]
    messages = [message.SerializeToString() for message in whole()[:-1]]
    with pytest.raises(grpc.RpcError):
        list(raw(client, ingestion.containing_service, ingestion, [*messages, UNDECODABLE[0]]))


def test_an_unknown_method_is_unimplemented(client):
    for path in ("/docmem.v1.QueryService/Guess", "/docmem.v1.NoService/Ask", "/x"):
        with pytest.raises(grpc.RpcError) as caught:
            client.channel.unary_unary(path)(b"", timeout=30)
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_message_over_the_limit_is_resource_exhausted(client):
    # Fault 48.
    with pytest.raises(grpc.RpcError) as caught:
        client.documents.Get(v1.GetDocumentRequest(document="d" * (5 * MIB)))
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    big = [whole()[0], v1.IngestRequest(chunk=b"x" * (5 * MIB)), end()]
    with pytest.raises(grpc.RpcError) as caught:
        list(ingest(client, big)())
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_texts_of_many_chunks_arrive_and_the_cap_is_named(client):
    # At the cap all of it is taken in and read; one byte more isn't.
    sizes = [1, 5, *scaled([], [64])]
    for size in sizes:
        data = (b"0123456789abcde\n" * (MIB // 16)) * size
        why = refused(lambda data=data: client.ingest(data, "x", chunk_bytes=MIB),
                      "INVALID_ARGUMENT", "CONTEXT_TOO_LONG")
        assert "131072" in why.message
    one = v1.IngestRequest(chunk=b"a" * (4 * MIB - 64))
    over = [whole()[0], *[one] * 17]
    why = refused(ingest(client, over), "INVALID_ARGUMENT", "LIMIT_EXCEEDED", "chunk")
    assert str(64 * MIB) in why.message


def test_a_text_of_several_megabytes_is_stored_where_the_model_takes_it(make_daemon, tmp_path):
    # At ratio 1 nothing of the text is computed, so its length costs little.
    positions = scaled(1_000_000, 4_000_000)
    roomy = model(tmp_path / "roomy", config={"max_position_embeddings": positions})
    client = make_daemon("--device-budget", "8MiB", model=roomy).start().client()
    text = "".join(document(n, 40) + "\n" for n in range(scaled(600, 3000)))
    assert len(text) > scaled(1, 5) * 1_000_000
    made = client.ingest(text, "x", ratio_ppm=[1_000_000], chunk_bytes=MIB).document
    assert made.text_sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert client.text("x") == text
    assert client.ask("x").finished
