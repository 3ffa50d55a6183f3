"""kill -9 at any moment: after the restart only whole versions are visible, and none is lost."""

import random
import threading
import time

import grpc
import pytest
from client import refusal
from daemon import scaled
from folders import adapter, scaled_adapter
from stubs import v1
from texts import document

KILLS = scaled(20, 200)
RATIOS = [900_000, 500_000, 0]
Reply = v1.Document.State


class Writer(threading.Thread):
    """Ingests and uploads until the daemon is gone; remembers what was acknowledged."""

    def __init__(self, client, start):
        super().__init__(daemon=True)
        self.client = client
        self.next = start
        self.documents, self.adapters, self.deleted = [], [], []
        self.deleting = None
        self.start()

    def run(self):
        try:
            while True:
                name = f"d{self.next}"
                self.next += 1
                self.client.ingest(document(name, 30), name, ratio_ppm=RATIOS)
                self.documents.append(name)
                for factor in (1, 2):
                    made = self.client.upload(name, scaled_adapter(factor))
                    self.adapters.append((name, made.version, factor))
                if self.next % 3 == 0 and len(self.documents) > 2:
                    self.deleting = self.documents.pop(0)
                    self.client.delete(self.deleting)
                    self.deleted.append(self.deleting)
        except grpc.RpcError as error:
            assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED), error


def check_document(client, name):
    """Whole or not there."""
    made = client.document(name)
    if made.state != Reply.STATE_READY:
        assert made.state == Reply.STATE_FAILED and made.state_message, made
        assert refusal(lambda: client.ask(name)).reason == "DOCUMENT_NOT_READY"
        assert not made.caches and not made.adapter_count
        return False
    assert client.text(name) == document(name, 30)
    assert [cache.ratio_ppm for cache in made.caches] == RATIOS
    for cache in made.caches:
        answer = client.ask(name, cache_id=cache.id, mode=v1.MODE_BASE, max_tokens=1)
        assert answer.finished.document_tokens_prefilled == 0
    listed = client.adapters.List(v1.ListAdaptersRequest(document=name)).adapters
    assert [one.version for one in listed] == [*range(len(listed), 0, -1)]
    assert len(listed) == made.adapter_count and len(listed) <= 2
    for one in listed:
        assert client.download(name, version=one.version) == scaled_adapter(one.version)
        assert client.ask(name, adapter_version=one.version, max_tokens=1).finished
    return True


def check_files(daemon, client):
    """On the disk lie exactly the files of the registry."""
    status = client.status()
    disk = next(tier for tier in status.tiers if tier.tier == v1.TIER_DISK)
    files = [*daemon.data.rglob("artifacts/*/*")]
    assert disk.used_bytes == sum(kind.bytes for kind in disk.kinds)
    assert sum(file.stat().st_size for file in files) == disk.used_bytes
    assert not [*daemon.data.rglob("temporary/*")]


@pytest.mark.timeout(scaled(600, 7200))
def test_only_whole_versions_are_ever_visible(make_daemon):
    # Faults 42 and 75.
    daemon = make_daemon().start()
    draw = random.Random(42)
    reached, known, start = 0, {}, 0
    for _ in range(KILLS):
        writer = Writer(daemon.client(), start)
        time.sleep(draw.uniform(0.0, 0.6))
        daemon.process.kill()
        daemon.process.wait(30)
        writer.join(60)
        assert not writer.is_alive()
        daemon.kill()
        start = writer.next

        client = daemon.start().client()
        assert client.status().quarantined == 0
        listed = client.documents.List(v1.ListDocumentsRequest(page_size=1000)).documents
        names = {one.id for one in listed}
        for gone in writer.deleted:
            known.pop(gone, None)
            assert gone not in names
        for name in [*writer.documents, writer.deleting]:
            if name and name not in writer.deleted:
                known[name] = 0
        for name, version, _ in writer.adapters:
            if name in known:
                known[name] = version
        # What was acknowledged is there; of what wasn't, whole documents or none.
        if writer.deleting not in names:
            known.pop(writer.deleting, None)
        assert set(known) <= names
        for name in names:
            if name not in known or name in writer.documents:
                ready = check_document(client, name)
                assert ready or name not in known
                if ready:
                    known.setdefault(name, 0)
                else:
                    client.delete(name)
        for name, version in known.items():
            assert client.document(name).adapter_count >= version
        check_files(daemon, client)
        reached += len(writer.documents)
        for name in [*known][: max(0, len(known) - 6)]:
            client.delete(name)
            del known[name]
    assert reached >= KILLS // 4, "the kills came before anything was written"


def test_a_killed_replacement_is_the_old_or_the_new_document(make_daemon):
    daemon = make_daemon().start()
    client = daemon.client()
    client.ingest(document("v0", 60), "d")
    client.upload("d", adapter())
    draw = random.Random(3)
    version = 0
    for _ in range(scaled(4, 40)):
        seen = client.document("d")
        new = document(f"v{version + 1}", 60)
        thread = threading.Thread(target=lambda client=client, new=new, seen=seen: refusal_or_ok(
            lambda: client.ingest(new, "d", replace=True, revision=seen.revision)), daemon=True)
        thread.start()
        time.sleep(draw.uniform(0, 0.3))
        daemon.process.kill()
        thread.join(60)
        daemon.kill()
        client = daemon.start().client()
        text = client.text("d")
        assert text in (document(f"v{version}", 60), new)
        made = client.document("d")
        assert made.state == Reply.STATE_READY and len(made.caches) == 1
        assert client.ask("d", mode=v1.MODE_BASE).finished
        if text == new:
            version += 1
            assert made.caches[0].id != seen.caches[0].id and made.current_adapter_version == 0
        else:
            assert made.caches == seen.caches
        check_files(daemon, client)


def refusal_or_ok(call):
    try:
        call()
    except grpc.RpcError:
        pass
