"""A daemon whose registry lies in PostgreSQL, and a server that crashes and comes back."""

import sys
import tempfile
import threading
from pathlib import Path

import grpc
import pytest
from client import refusal_of, refused
from daemon import ROOT, eventually, scaled
from stubs import v1
from texts import document

sys.path.insert(0, str(ROOT / "tests"))
from with_postgres import Server, programs  # noqa: E402

pytestmark = pytest.mark.skipif(programs() is None, reason="PostgreSQL isn't installed")


@pytest.fixture
def server():
    # Not below pytest's own folder: PostgreSQL's user couldn't reach it.
    with (
        tempfile.TemporaryDirectory(prefix="docmem-postgres-") as folder,
        Server(Path(folder), programs()) as server,
    ):
        yield server


@pytest.fixture
def daemon(make_daemon, server):
    return make_daemon("--registry", server.address).start()


def test_everything_is_there_after_a_restart(daemon):
    client = daemon.client()
    client.ingest(document("a"), "a", pin=True)
    client.ingest(document("b"), "b", ratio_ppm=[500_000, 1_000_000])
    answer = client.ask("a").text
    assert not (daemon.data / "registry.db").exists()
    daemon.restart(gently=False)
    client = daemon.client()
    assert client.document("a").pinned and len(client.document("b").caches) == 2
    again = client.ask("a")
    assert again.text == answer
    assert again.finished.document_tokens_prefilled == 0


def test_another_data_folder_is_refused(daemon, make_daemon, server):
    assert daemon.stop() == 0
    code, said = make_daemon("--registry", server.address).refusal()
    assert code == 1
    assert "another data folder" in said


def test_a_server_that_is_gone_makes_unavailable_and_nothing_is_lost(daemon, server):
    client = daemon.client()
    client.ingest(document("a"), "a")
    kept = {"a"}
    for round_number in range(scaled(2, 10)):
        server.stop()
        refused(lambda: client.document("a"), "UNAVAILABLE", "REGISTRY_UNAVAILABLE")
        refused(lambda: client.ingest(document("x"), "x"), "UNAVAILABLE", "REGISTRY_UNAVAILABLE")
        server.start()
        eventually(lambda: client.document("a").id == "a")
        name = f"round-{round_number}"
        client.ingest(document(name), name)
        kept.add(name)
        assert client.ask(name, max_tokens=2).finished
    assert {item.id for item in client.documents.List(v1.ListDocumentsRequest()).documents} >= kept


def test_crashes_under_load_lose_nothing_that_was_acknowledged(daemon, server):
    client = daemon.client()
    acknowledged, done = set(), threading.Event()

    def write():
        number = 0
        while not done.is_set():
            number += 1
            name = f"d{number}"
            try:
                client.ingest(document(name), name, ratio_ppm=[1_000_000])
                acknowledged.add(name)
            except grpc.RpcError as error:
                assert refusal_of(error).code == grpc.StatusCode.UNAVAILABLE, error

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    for _ in range(scaled(3, 20)):
        before = len(acknowledged)
        eventually(lambda before=before: len(acknowledged) > before + 3)
        server.stop()
        server.start()
    done.set()
    writer.join(60)
    assert acknowledged
    for name in acknowledged:
        assert client.ask(name, max_tokens=1).finished, name
