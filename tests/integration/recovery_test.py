"""--recovery: what a normal start refuses can still be listed and deleted."""

import json
import shutil
import sqlite3
import subprocess

import pytest
from client import refused, upload_messages
from daemon import BINARIES, NOT_SERVING, SERVING, eventually
from folders import adapter, model
from stubs import v1
from texts import document

Phase = v1.GetStatusResponse.Phase
RECOVERY = ("UNAVAILABLE", "RECOVERY_MODE")
NEEDS_MODEL = {
    "ask": lambda client: client.ask("one"),
    "score": lambda client: client.score("one", "an answer"),
    "route": lambda client: client.queries.Route(v1.RouteRequest(question="which?")),
    "ingest": lambda client: client.ingest(document("new"), "new"),
    "build": lambda client: client.build("one", ratio_ppm=[0]),
    "prefetch": lambda client: client.documents.Prefetch(v1.PrefetchRequest(documents=["one"])),
    "upload": lambda client: client.adapters.Upload(upload_messages("one", adapter())),
    "export": lambda client: client.documents.Export(v1.ExportDocumentRequest(document="one")),
    "import": lambda client: client.documents.Import(
        iter([v1.ImportDocumentRequest(header=v1.ImportHeader())])),
    "train": lambda client: client.trainings.Start(v1.StartTrainingRequest()),
}


def recovered(daemon):
    daemon.launch()
    client = daemon.client()
    eventually(lambda: client.status().phase == Phase.PHASE_RECOVERY)
    return client


def names(client):
    listed = client.documents.List(v1.ListDocumentsRequest()).documents
    return sorted(one.id for one in listed)


def command(daemon, *arguments):
    return subprocess.run(
        [BINARIES / "docmem", "--address", daemon.address, "--output", "json", *arguments],
        capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def filled(folder):
    """A data folder with documents `one` and `two`, both with an adapter; each test copies it."""
    return folder / "filled"


@pytest.fixture(scope="module")
def answers(make_shared_daemon, filled):
    daemon = make_shared_daemon(folder=filled).start()
    client = daemon.client()
    for name in ("one", "two"):
        client.ingest(document(name), name, pin=True)
        client.upload(name, adapter())
    answers = {name: client.ask(name).tokens for name in ("one", "two")}
    assert daemon.stop() == 0
    return answers


@pytest.fixture
def place(answers, filled, tmp_path):
    shutil.copytree(filled / "data", tmp_path / "d" / "data")
    return tmp_path / "d"


def test_where_the_memory_does_not_suffice_it_lists_and_deletes(make_daemon, place, answers):
    # Fault 78, and the refusal of fault 35.
    too_large = ("--device-budget", "64TiB")
    code, log = make_daemon(*too_large, folder=place).refusal()
    assert code == 1
    for part in ("weights", "--device-budget 67108864 MiB", "reserve", "exceed the memory limit"):
        assert part in log, log

    daemon = make_daemon(*too_large, "--recovery", folder=place)
    client = recovered(daemon)
    assert names(client) == ["one", "two"]
    assert client.document("one").adapter_count == 1
    assert client.adapters.Get(v1.GetAdapterRequest(document="one", version=1)).version == 1
    assert client.text("one") == document("one")
    assert client.download("one", version=1) == adapter()
    assert client.delete("one").deleted
    assert daemon.stop() == 0

    client = make_daemon(folder=place).start().client()
    assert names(client) == ["two"]
    assert client.ask("two").tokens == answers["two"]


@pytest.mark.parametrize("name", NEEDS_MODEL)
def test_what_needs_the_model_is_refused(recovering, name):
    why = refused(lambda: NEEDS_MODEL[name](recovering), *RECOVERY)
    assert "--recovery" in why.message and not why.retry


@pytest.fixture(scope="module")
def recovering(make_shared_daemon, answers, filled, folder):
    shutil.copytree(filled / "data", folder / "recovering" / "data")
    return recovered(make_shared_daemon("--recovery", folder=folder / "recovering"))


def test_readiness_is_off_and_liveness_on(make_daemon, place):
    daemon = make_daemon("--recovery", folder=place)
    client = recovered(daemon)
    assert daemon.readiness() == NOT_SERVING
    assert daemon.health("docmem.v1.QueryService") == NOT_SERVING
    assert daemon.liveness() == SERVING
    status = client.status()
    assert not status.HasField("model")
    assert (status.documents, status.adapters, status.quarantined) == (2, 2, 0)
    assert client.residents() == []
    assert 'docmem_resident_items{kind="cache",tier="disk"}' in daemon.metrics_text()
    assert not client.queries.Abort(v1.AbortRequest(request_id="none")).found


def test_collections_go_and_all_else_that_is_only_rows_works(make_daemon, place):
    daemon = make_daemon("--recovery", folder=place)
    client = recovered(daemon)
    client.collections.Create(v1.CreateCollectionRequest(name="books"))
    assert len(client.collections.List(v1.ListCollectionsRequest()).collections) == 2
    client.collections.Delete(v1.DeleteCollectionRequest(name="books", force=True))
    cache = client.document("one").caches[0].id
    assert client.documents.DeleteCache(
        v1.DeleteCacheRequest(document="one", cache_id=cache)).deleted
    client.adapters.SetCurrent(v1.SetCurrentAdapterRequest(document="two"))
    assert client.adapters.Delete(v1.DeleteAdapterRequest(document="two", version=1)).deleted
    daemon.kill()
    client = make_daemon(folder=place).start().client()
    assert client.document("one").caches == []
    assert client.document("two").adapter_count == 0
    assert client.ask("two").finished


@pytest.mark.parametrize("gone", ["missing", "other", "unnamed"])
def test_it_needs_no_model(make_daemon, place, tmp_path, gone):
    folders = {"missing": tmp_path / "no-such-folder", "unnamed": ""}
    if gone == "other":
        folders["other"] = model(tmp_path / "other", config={"vocab_size": 7})
    daemon = make_daemon("--recovery", folder=place, model=folders[gone])
    client = recovered(daemon)
    assert names(client) == ["one", "two"]
    assert client.delete("two").deleted
    assert daemon.stop() == 0


def test_a_damaged_row_can_be_deleted_by_the_command(make_daemon, place):
    with sqlite3.connect(place / "data/registry.db") as registry:
        registry.execute("UPDATE documents SET document_tokens = 7 WHERE name = 'one'")
    registry.close()
    daemon = make_daemon("--recovery", folder=place)
    client = recovered(daemon)
    assert client.document("one").state == v1.Document.STATE_QUARANTINED
    listed = command(daemon, "list")
    assert listed.returncode == 0, listed.stderr
    assert "QUARANTINED" in listed.stdout and '"two"' in listed.stdout
    assert json.loads(command(daemon, "status").stdout)["phase"] == "PHASE_RECOVERY"
    gone = command(daemon, "delete", "one")
    assert gone.returncode == 0, gone.stderr
    asked = command(daemon, "ask", "two", "why?")
    assert asked.returncode == 1 and "recovery" in asked.stderr
    assert client.status().quarantined == 0
