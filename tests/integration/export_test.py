"""Export and import: a document as one file, from one data folder into another."""

import hashlib
import random
import subprocess

import grpc
import pytest
from client import chunks, refused, stream_end
from daemon import BINARIES, scaled
from folders import adapter, model
from stubs import v1
from texts import document

PREFILL = v1.MODE_ADAPTER_PREFILL
HALF, ALL = 500_000, 1_000_000
INVALID = ("INVALID_ARGUMENT", "IMPORT_INVALID")
VERSION_AT = 8


def export(client, name, **fields):
    """The whole file; length and digest of the stream are checked."""
    *parts, last = client.documents.Export(v1.ExportDocumentRequest(document=name, **fields))
    data = b"".join(part.chunk for part in parts)
    assert last.end == stream_end(data)
    return data


def import_messages(data, *, end=True, **header):
    yield v1.ImportDocumentRequest(header=v1.ImportHeader(**header))
    for chunk in chunks(data):
        yield v1.ImportDocumentRequest(chunk=chunk)
    if end:
        yield v1.ImportDocumentRequest(end=stream_end(data))


def bring(client, data, **header):
    return client.documents.Import(import_messages(data, **header))


def sealed(data, at, new):
    """Other bytes at `at`, under a digest that fits them."""
    body = data[:at] + new + data[at + len(new) : -64]
    return body + hashlib.sha256(body).hexdigest().encode()


def files_of(daemon):
    return {path for path in daemon.data.rglob("*/*") if path.is_file()}


def settings_of(made):
    """What must be equal on both sides: all but times, revision and where it is."""
    copy = v1.Document()
    copy.CopyFrom(made)
    for name in ("collection", "id", "create_time", "update_time", "revision", "stored_bytes"):
        copy.ClearField(name)
    for cache in copy.caches:
        cache.ClearField("create_time")
    return copy


CHOICES = [
    *({"ratio": ratio, "mode": mode}
      for ratio in (HALF, ALL) for mode in (v1.MODE_BASE, v1.MODE_BASE_KV_ADAPTER_DECODE)),
    {"ratio": HALF, "mode": PREFILL},
]


@pytest.fixture(scope="module")
def origin(make_shared_daemon, patient, folder):
    return make_shared_daemon(model=patient, folder=folder / "source").start()


@pytest.fixture(scope="module")
def source(origin):
    client = origin.client()
    client.ingest(document("moved"), "moved", ratio_ppm=[HALF, ALL], title="Of doors",
                  labels={"kind": "report"}, system_text="Answer in one line.", pin=True)
    client.upload("moved", adapter("rslora"))
    client.upload("moved", adapter())
    client.build("moved", mode=PREFILL, ratio_ppm=[HALF])
    return client


@pytest.fixture(scope="module")
def target(make_shared_daemon, patient, folder):
    return make_shared_daemon(model=patient, folder=folder / "target").start()


@pytest.fixture(scope="module")
def archive(source):
    return export(source, "moved")


def test_the_copy_is_the_document_and_answers_alike_also_after_a_restart(source, target, archive):
    client = target.client()
    made = bring(client, archive)
    assert (made.id, made.collection, made.revision) == ("moved", "default", 1)
    assert made.pinned and made.title == "Of doors" and len(made.caches) == 3
    assert made.current_adapter_version == 2 and made.adapter_count == 2
    assert settings_of(made) == settings_of(source.document("moved"))
    assert client.text("moved") == document("moved")
    for version in (1, 2):
        assert (client.download("moved", version=version)
                == source.download("moved", version=version))
    expected = [source.ask("moved", **choice) for choice in CHOICES]
    for _ in range(2):
        for choice, there in zip(CHOICES, expected):
            here = client.ask("moved", **choice)
            assert len(here.tokens) > 4 and here.tokens == there.tokens, choice
            assert here.log_probabilities == there.log_probabilities
            assert here.started.cache_id == there.started.cache_id
            assert here.finished.document_tokens_prefilled == 0
        target.restart()
        client = target.client()
    # What comes out again is what went in.
    assert export(client, "moved") == archive


def test_a_copy_can_have_another_id_and_collection(target, archive):
    client = target.client()
    client.collections.Create(v1.CreateCollectionRequest(name="other"))
    made = bring(client, archive, document="renamed", collection="other")
    assert (made.id, made.collection) == ("renamed", "other")
    assert client.ask("renamed", collection="other").finished
    refused(lambda: bring(client, archive, collection="nowhere"),
            "NOT_FOUND", "COLLECTION_NOT_FOUND")
    refused(lambda: bring(client, archive, document="../x"), "INVALID_ARGUMENT", "INVALID_FIELD")


def test_a_document_without_text_caches_or_adapters_travels_too(source, target):
    made = source.ingest(document("bare"), "bare", retain_text=False, ratio_ppm=[ALL]).document
    source.documents.DeleteCache(v1.DeleteCacheRequest(
        document="bare", cache_id=made.caches[0].id))
    client = target.client()
    copy = bring(client, export(source, "bare"))
    assert settings_of(copy) == settings_of(source.document("bare"))
    assert not copy.text_retained and not copy.caches
    refused(lambda: client.text("bare"), "FAILED_PRECONDITION", "TEXT_NOT_RETAINED")


def test_an_existing_document_is_replaced_only_by_its_revision(target, archive):
    client = target.client()
    old = client.ingest(document("here before"), "taken").document
    client.upload("taken", adapter("all-modules"))
    old = client.document("taken")
    answer = client.ask("taken")
    why = refused(lambda: bring(client, archive, document="taken"),
                  "ALREADY_EXISTS", "DOCUMENT_EXISTS")
    assert why.metadata["revision"] == str(old.revision)
    refused(lambda: bring(client, archive, document="taken", replace=True),
            "INVALID_ARGUMENT", "INVALID_FIELD", "revision")
    refused(lambda: bring(client, archive, document="taken", replace=True,
                          revision=old.revision + 1), "ABORTED", "REVISION_MISMATCH")
    assert client.document("taken") == old and client.ask("taken").tokens == answer.tokens
    made = bring(client, archive, document="taken", replace=True, revision=old.revision)
    assert made.revision == old.revision + 1 and made.adapter_count == 2
    assert client.text("taken") == document("moved")
    assert client.ask("taken", ratio=HALF).tokens == client.ask("moved", ratio=HALF).tokens


# ---- What is refused leaves nothing ----


@pytest.fixture
def untouched(target):
    """The client of a daemon that must have exactly the same afterwards."""
    client = target.client()
    files, documents = files_of(target), client.status().documents
    yield client
    assert client.status().documents == documents
    refused(lambda: client.document("fresh"), "NOT_FOUND", "DOCUMENT_NOT_FOUND")
    assert files_of(target) == files


def test_a_damaged_byte_anywhere_is_refused(untouched, archive):
    places = {0, 7, 8, 12, 40, 48, len(archive) - 65, len(archive) - 64, len(archive) - 1}
    places |= set(random.Random(1).sample(range(len(archive)), scaled(25, 500)))
    for place in sorted(places):
        damaged = bytearray(archive)
        damaged[place] ^= 0x40
        refused(lambda data=bytes(damaged): bring(untouched, data, document="fresh"), *INVALID)


def test_damage_under_a_right_digest_is_refused_where_it_is(untouched, archive):
    size = int.from_bytes(archive[12:16], "little")
    text_at = 48 + size
    for place in (48 + size // 2, text_at, text_at + len(document("moved").encode()) + 10,
                  len(archive) - 65):
        other = bytes([archive[place] ^ 0x01])
        data = sealed(archive, place, other)
        why = refused(lambda data=data: bring(untouched, data, document="fresh"), *INVALID)
        assert "damaged" in why.message


def test_a_truncated_or_longer_file_is_refused(untouched, archive):
    for length in (0, 5, 11, 30, 1000, len(archive) // 2, len(archive) - 64, len(archive) - 1):
        why = refused(lambda length=length: bring(untouched, archive[:length], document="fresh"),
                      *INVALID)
        assert f"{length} bytes" in why.message
    refused(lambda: bring(untouched, archive + b"\n", document="fresh"), *INVALID)


def test_a_stream_without_its_end_or_with_a_false_one_is_refused(untouched, archive):
    refused(lambda: bring(untouched, archive, document="fresh", end=False),
            "INVALID_ARGUMENT", "STREAM_INCOMPLETE")
    refused(lambda: untouched.documents.Import(iter([])), "INVALID_ARGUMENT", "STREAM_INCOMPLETE")
    messages = [*import_messages(archive, document="fresh", end=False)]
    messages.append(v1.ImportDocumentRequest(end=stream_end(archive[1:])))
    refused(lambda: untouched.documents.Import(iter(messages)),
            "INVALID_ARGUMENT", "CHECKSUM_MISMATCH", "end.total_bytes")


def test_another_format_version_is_told_with_both_numbers(untouched, archive):
    for version, word in ((2, "newer"), (0, "older")):
        data = sealed(archive, VERSION_AT, version.to_bytes(4, "little"))
        why = refused(lambda data=data: bring(untouched, data, document="fresh"), *INVALID)
        assert f"version {version}, this docmemd reads version 1" in why.message
        assert word in why.message and "export" in why.message
        assert why.metadata["version"] == str(version)


FOREIGN = {
    "another weight": ({"tensors": lambda t: t | {
        "model.norm.weight": t["model.norm.weight"] * 2}}, {}, "weights_digest"),
    "another rope_theta": ({"config": {"rope_theta": 500000.0}}, {}, "config_digest"),
    "another dtype": ({}, {"--dtype": "bfloat16"}, "dtype"),
    "another prompt format": ({}, {"--prompt-format": "plain"}, "prompt_format_digest"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_document_of_another_model_is_refused_by_the_field(make_daemon, tmp_path, name,
                                                             patient, archive):
    changes, options, field = FOREIGN[name]
    place = model(tmp_path / "model", source=patient, **changes)
    daemon = make_daemon(*sum(options.items(), ()), model=place).start()
    client, files = daemon.client(), files_of(daemon)
    why = refused(lambda: bring(client, archive), "FAILED_PRECONDITION", "IDENTITY_MISMATCH")
    wanted = {field, "config_digest"} if field == "dtype" else {field}
    assert why.metadata["field"] in wanted and "exported from" in why.message, why
    assert files_of(daemon) == files and client.status().documents == 0


def test_what_a_killed_daemon_had_received_is_gone_at_the_next_start(make_daemon, patient,
                                                                     archive):
    daemon = make_daemon(model=patient).start()
    client = daemon.client()

    def endless():
        yield from import_messages(archive[:-70], end=False)
        daemon.process.kill()

    with pytest.raises(grpc.RpcError):
        client.documents.Import(endless())
    daemon.kill()
    client = daemon.start().client()
    assert client.status().documents == 0
    assert not [path for path in files_of(daemon) if path.suffix in (".text", ".cache",
                                                                     ".adapter")]


def test_a_document_that_isnt_there_or_whole_isnt_exported(source):
    refused(lambda: export(source, "nobody"), "NOT_FOUND", "DOCUMENT_NOT_FOUND")
    refused(lambda: export(source, ""), "INVALID_ARGUMENT", "INVALID_FIELD")


# ---- By the program ----


def test_docmem_exports_into_a_file_and_imports_it(origin, source, target, archive, tmp_path):
    def docmem(address, *arguments, code=0):
        done = subprocess.run([BINARIES / "docmem", "--address", address, *map(str, arguments)],
                              capture_output=True, timeout=90, check=False)
        assert done.returncode == code, done.stderr.decode()
        return done

    path = tmp_path / "moved.docmem"
    docmem(origin.address, "export", "moved", path)
    assert path.read_bytes() == archive
    docmem(target.address, "import", path, "--id", "by-cli")
    client = target.client()
    assert client.ask("by-cli", ratio=HALF).tokens == source.ask("moved", ratio=HALF).tokens
    done = docmem(target.address, "import", path, "--id", "by-cli", code=1)
    assert b"exists" in done.stderr
    path.write_bytes(archive[:-1])
    assert b"cut off" in docmem(target.address, "import", path, "--id", "short", code=1).stderr
