"""This client and the C++ one make the same calls, and try the same failures again."""

import subprocess

import docmem
import grpc
import pytest
from daemon import BINARIES
from docmem import v1
from fake_daemon import Refusal
from google.protobuf.empty_pb2 import Empty
from google.protobuf.field_mask_pb2 import FieldMask

# What happened meanwhile isn't known, so only calls that are safe to repeat are tried again.
INTERRUPTED = Refusal(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN", delay=0.01)
BUILT = v1.BuildCacheResponse(result=v1.BuildCacheResult())
INGESTED = v1.IngestResponse(result=v1.IngestResult())
ANSWERED = v1.AskResponse(finished=v1.Finished())
END = v1.StreamEnd(sha256="e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

TITLE = {"values": v1.Document(title="t"), "update_mask": FieldMask(paths=["title"])}
LIMITS = {
    "settings": v1.CollectionSettings(limits=v1.CollectionLimits(max_documents=3)),
    "update_mask": FieldMask(paths=["limits.max_documents"]),
}
# The program's arguments; the same call here; the reply that ends it.
CALLS = [
    ("show d1", lambda c: c.documents.get(document="d1"), Empty()),
    ("list", lambda c: list(c.documents.list()), Empty()),
    ("update d1 --title t", lambda c: c.documents.update(document="d1", **TITLE), Empty()),
    ("update d1 --title t --revision 3",
     lambda c: c.documents.update(document="d1", revision=3, **TITLE), Empty()),
    ("delete d1", lambda c: c.documents.delete(document="d1"), Empty()),
    ("delete d1 --allow-missing",
     lambda c: c.documents.delete(document="d1", allow_missing=True), Empty()),
    ("text d1", lambda c: c.documents.text("d1"), v1.GetTextResponse(end=END)),
    ("prefetch d1", lambda c: c.documents.prefetch(documents=["d1"]), Empty()),
    ("prefetch d1 d2 --wait",
     lambda c: c.documents.prefetch(documents=["d1", "d2"], wait=True), Empty()),
    ("cache build d1 --ratio 0.5", lambda c: c.documents.build_cache("d1", ratios=[0.5]), BUILT),
    ("cache delete d1 c1",
     lambda c: c.documents.delete_cache(document="d1", cache_id="c1"), Empty()),
    ("cache delete d1 c1 --allow-missing",
     lambda c: c.documents.delete_cache(document="d1", cache_id="c1", allow_missing=True), Empty()),
    ("ingest {text} --ratio 0.9,0",
     lambda c: c.documents.ingest("text", ratios=[0.9, 0]), INGESTED),
    ("export d1 {new}1", lambda c: c.documents.export("d1", f"{c.new}2"),
     v1.ExportDocumentResponse(end=END)),
    ("import {text} --id d1", lambda c: c.documents.import_(c.text, "d1"), Empty()),
    ("adapter upload d1 {folder}", lambda c: c.adapters.upload("d1", c.folder), Empty()),
    ("adapter download d1 {new}3", lambda c: c.adapters.download("d1", f"{c.new}4"),
     v1.DownloadAdapterResponse(end=END)),
    ("adapter list d1", lambda c: list(c.adapters.list(document="d1")), Empty()),
    ("adapter show d1 --adapter 2", lambda c: c.adapters.get(document="d1", version=2), Empty()),
    ("adapter use d1 2", lambda c: c.adapters.set_current(document="d1", version=2), Empty()),
    ("adapter delete d1 2", lambda c: c.adapters.delete(document="d1", version=2), Empty()),
    ("adapter delete d1 2 --allow-missing",
     lambda c: c.adapters.delete(document="d1", version=2, allow_missing=True), Empty()),
    ("collection create law", lambda c: c.collections.create(name="law"), Empty()),
    ("collection show law", lambda c: c.collections.get(name="law"), Empty()),
    ("collection list", lambda c: list(c.collections.list()), Empty()),
    ("collection update law --max-documents 3",
     lambda c: c.collections.update(name="law", **LIMITS), Empty()),
    ("collection update law --max-documents 3 --revision 2",
     lambda c: c.collections.update(name="law", revision=2, **LIMITS), Empty()),
    ("collection delete law", lambda c: c.collections.delete(name="law"), Empty()),
    ("collection delete law --allow-missing",
     lambda c: c.collections.delete(name="law", allow_missing=True), Empty()),
    ("train d1", lambda c: c.trainings.start(document="d1"), Empty()),
    ("jobs list", lambda c: list(c.trainings.list()), Empty()),
    ("jobs show j1", lambda c: c.trainings.get(job_id="j1"), Empty()),
    ("jobs cancel j1", lambda c: c.trainings.cancel(job_id="j1"), Empty()),
    ("ask d1 Why?", lambda c: c.ask("d1", "Why?").read(), ANSWERED),
    ("score d1 Why? so", lambda c: c.score("d1", "Why?", "so"), Empty()),
    ("route Why?", lambda c: c.route(question="Why?"), Empty()),
    ("status", lambda c: c.admin.status(), Empty()),
    ("residents", lambda c: list(c.admin.residents()), Empty()),
    ("drain", lambda c: c.admin.drain(), Empty()),
]


def tries_of(fake, script, call):
    """Of each try: what was called, for how many seconds (to two digits: gRPC rounds long deadlines
    up), for which document."""
    fake.script, fake.tries = script, []
    call()
    assert fake.tries
    return [
        (made.method, float(f"{made.seconds:.2g}"), made.metadata.get("docmem-document"))
        for made in fake.tries
    ]


def run(address, *arguments):
    command = [BINARIES / "docmem", "--address", address, *arguments]
    subprocess.run(command, capture_output=True, timeout=60, check=False)


def ignore_failure(call):
    try:
        call()
    except docmem.DocMemError:
        pass


@pytest.fixture
def client(fake):
    with docmem.Client(fake.address) as client:
        yield client


@pytest.mark.parametrize(("arguments", "call", "reply"), CALLS, ids=[call[0] for call in CALLS])
def test_calls_repeats_deadlines_and_headers_agree(
    fake, client, tmp_path, arguments, call, reply
):
    client.text, client.folder, client.new = tmp_path / "text", tmp_path, tmp_path / "new"
    client.text.write_text("text")
    (tmp_path / "adapter_config.json").write_text("{}")
    (tmp_path / "adapter_model.safetensors").write_text("")
    arguments = [
        word.format(text=client.text, folder=client.folder, new=client.new)
        for word in arguments.split()
    ]
    script = [[INTERRUPTED], [reply]]
    theirs = tries_of(fake, script, lambda: run(fake.address, *arguments))
    ours = tries_of(fake, script, lambda: ignore_failure(lambda: call(client)))
    assert ours == theirs


@pytest.mark.parametrize("code", ["UNAVAILABLE", "RESOURCE_EXHAUSTED"])
def test_every_reason_is_retried_or_not_as_in_the_cpp_client(fake, client, code):
    def tries(reason, safe):
        """The numbers of tries here and there."""
        script = [[Refusal(grpc.StatusCode[code], reason, delay=0.001)], [Empty()]]
        delete = ["delete", "d1", *(["--allow-missing"] if safe else [])]
        theirs = tries_of(fake, script, lambda: run(fake.address, *delete))
        ours = tries_of(fake, script, lambda: ignore_failure(
            lambda: client.documents.delete(document="d1", allow_missing=safe)))
        return len(ours), len(theirs)

    of_safe_calls = {reason: tries(reason, safe=True) for reason in v1.ErrorReason.keys()}
    assert {name: both for name, both in of_safe_calls.items() if both[0] != both[1]} == {}
    retried = [reason for reason, (ours, _) in of_safe_calls.items() if ours == 2]
    assert retried
    of_others = {reason: tries(reason, safe=False) for reason in retried}
    assert {name: both for name, both in of_others.items() if both[0] != both[1]} == {}
