"""Names from outside never become paths, and links inside the data folder are never followed."""

import os
import re
import shutil
import signal
import subprocess

import pytest
from client import refusal, refused
from folders import adapter, model
from stubs import v1
from texts import document

# Fault 31.
NAMES = [
    "../x", "/etc", "/etc/passwd", "a/../../b", "a/b", "..", ".", "...", ".hidden", "a/", "/",
    "a\\b", "a\0b", "\0", "n" * 4096, "a b", " a", "a\n", "a%2fb", "~", "a:b", "a*", "$HOME",
    "é", "ａ", "а",  # e with acute, full-width a, Cyrillic a
    "a\u200bb", "\u202ea", "-" * 129, "con/", "file:///etc/passwd", "a;rm",
]
GOOD_NAMES = ["-", "_", "a..b", "A-Z_0.9", "n" * 128, "CON", "nul.txt",
              "a.", "--help"]

OUR_NAMES = {"artifacts", "temporary", "lock", "instance", "spare", "model-digests.json"}


def calls(client, name):
    return {
        "Ask": lambda: client.ask(name),
        "Score": lambda: client.score(name, "a"),
        "Ingest": lambda: client.ingest("text", name),
        "Ingest into": lambda: client.ingest("text", "x", collection=name),
        "Get": lambda: client.document(name),
        "Get in": lambda: client.document("d", collection=name),
        "List in": lambda: client.documents.List(v1.ListDocumentsRequest(collection=name)),
        "Delete": lambda: client.delete(name, allow_missing=True),
        "GetText": lambda: client.text(name),
        "Prefetch": lambda: client.documents.Prefetch(v1.PrefetchRequest(documents=[name])),
        "BuildCache": lambda: client.build(name),
        "DeleteCache": lambda: client.documents.DeleteCache(
            v1.DeleteCacheRequest(document="d", cache_id=name)),
        "Upload": lambda: client.upload(name, adapter()),
        "Download": lambda: client.download(name),
        "Train": lambda: client.train(name),
        "Train in": lambda: client.trainings.Start(
            v1.StartTrainingRequest(collection=name, document="d")),
        "Trainings of": lambda: client.trainings.List(v1.ListTrainingJobsRequest(document=name)),
        "Trainings in": lambda: client.trainings.List(
            v1.ListTrainingJobsRequest(collection=name)),
        "Training": lambda: client.training(name),
        "Watch": lambda: client.watch_training(name),
        "Cancel": lambda: client.trainings.Cancel(v1.CancelTrainingRequest(job_id=name)),
        "Create": lambda: client.collections.Create(v1.CreateCollectionRequest(name=name)),
        "Delete all": lambda: client.collections.Delete(
            v1.DeleteCollectionRequest(name=name, force=True, allow_missing=True)),
        "Abort": lambda: client.queries.Abort(v1.AbortRequest(request_id=name)),
        "request id": lambda: client.ask("d", request_id=name),
        "cache id": lambda: client.ask("d", cache_id=name),
    }


def tree(folder):
    return {path for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def client(daemon):
    client = daemon.client()
    client.ingest(document("d"), "d")
    return client


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:20])
def test_a_hostile_name_is_refused_everywhere(client, daemon, name):
    before = tree(daemon.folder)
    for method, call in calls(client, name).items():
        why = refusal(call)
        assert why.code.name == "INVALID_ARGUMENT" and why.field, f"{method}: {why}"
        if len(name) > 3:
            assert name not in why.message, method
    assert tree(daemon.folder) == before


def test_a_good_name_is_never_part_of_a_path(client, daemon):
    for name in GOOD_NAMES:
        client.ingest(document(name), name)
        client.upload(name, adapter())
        assert client.ask(name).started.document == name
    names = {path.relative_to(daemon.data).as_posix() for path in tree(daemon.data)}
    for name in names:
        parts = name.split("/")
        assert parts[0] in OUR_NAMES or parts[0].startswith("registry.db"), name
        if len(parts) == 3:
            stem, kind = parts[2].split(".")
            assert int(stem, 16) >= 0 and kind in ("text", "cache", "adapter")


class Trace:
    """Paths that a process hands to the kernel in a `with` block."""

    def __init__(self, process, log):
        self._command = ["strace", "-f", "-s", "8192", "-e", "trace=%file", "-o", log, "-p",
                         str(process.pid)]
        self._log = log

    def __enter__(self):
        self._strace = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        said = self._strace.stderr.readline()
        if "attached" not in said:
            pytest.skip(f"strace may not look: {said}")
        return self

    def __exit__(self, *_):
        self._strace.send_signal(signal.SIGINT)
        self._strace.communicate(timeout=30)

    def paths(self):
        return re.findall(r'"((?:[^"\\]|\\.)*)"', self._log.read_text())


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.skipif("thread" in os.environ.get("DOCMEM_SANITIZE", ""),
                    reason="ThreadSanitizer opens libraries to name the frames of gRPC that it hides")
def test_no_name_opens_anything_outside_of_the_data_folder(make_daemon, tmp_path):
    daemon = make_daemon().start()
    client = daemon.client()
    with Trace(daemon.process, tmp_path / "trace") as trace:
        client.ingest(document("d"), "d")
        for name in ("../x", "/etc/passwd", "a/../../b", "..", ".hidden", "a\0b"):
            for call in calls(client, name).values():
                refusal(call)
        assert client.ask("d").finished
    paths = trace.paths()
    assert any(path.endswith(".cache") for path in paths), "nothing was traced"
    known = (str(daemon.data), "/proc/", "/sys/", "/etc/localtime")
    assert not [path for path in paths if ".." in path.split("/") or
                (path.startswith("/") and not path.startswith(known))]


@pytest.mark.parametrize("place", ["temporary", "artifacts"])
def test_a_link_in_the_way_of_a_new_file_isnt_followed(make_daemon, tmp_path, place):
    # Fault 32.
    daemon = make_daemon().start()
    client = daemon.client()
    client.ingest(document("before"), "before")
    target = tmp_path / "outside"
    target.write_bytes(b"untouched")
    planted = set()
    for number in range(1, 300):
        shard = f"{number % 64:02x}" if place == "artifacts" else ""
        for kind in ("text", "cache", "adapter"):
            path = daemon.data / place / shard / f"{number:016x}.{kind}"
            if not path.exists():
                os.symlink(target, path)
                planted.add(path)
    if place == "temporary":
        why = refusal(lambda: client.ingest(document("linked"), "linked"))
        assert why.code.name not in ("OK", "INTERNAL", "UNKNOWN"), why
    else:  # A finished file takes the place of the link.
        client.ingest(document("linked"), "linked")
        client.upload("linked", adapter())
        assert client.ask("linked").finished
        replaced = {path.suffix for path in planted if not path.is_symlink()}
        assert replaced == {".text", ".cache", ".adapter"}
    assert target.read_bytes() == b"untouched"
    assert client.ask("before").finished
    client.delete("linked", allow_missing=True)


def test_a_stored_file_that_became_a_link_isnt_read(make_daemon, tmp_path):
    daemon = make_daemon().start()
    client = daemon.client()
    client.ingest(document("linked"), "linked")
    client.ingest(document("other"), "other")
    file = sorted(daemon.data.rglob("*.cache"), key=lambda path: path.name)[0]
    moved = tmp_path / "moved.cache"
    shutil.move(file, moved)
    os.symlink(moved, file)
    why = refusal(lambda: client.ask("linked"))
    assert why.code.name in ("DATA_LOSS", "FAILED_PRECONDITION"), why
    assert client.ask("other").finished


def test_a_linked_folder_in_the_data_folder_is_refused_at_start(make_daemon, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    daemon = make_daemon()
    daemon.data.mkdir()
    os.symlink(elsewhere, daemon.data / "artifacts")
    code, log = daemon.refusal()
    assert code == 1 and "artifacts" in log
    assert not [*elsewhere.iterdir()]


def test_weights_may_be_links(make_daemon, tmp_path):
    # A cache of Hugging Face's hub holds links to blobs.
    folder = model(tmp_path / "models")
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    for file in [*folder.iterdir()]:
        shutil.move(file, blobs / file.name)
        os.symlink(blobs / file.name, file)
    client = make_daemon(model=folder).start().client()
    client.ingest(document("d"), "d")
    assert client.ask("d").finished
    refused(lambda: client.ask("none"), "NOT_FOUND", "DOCUMENT_NOT_FOUND")
