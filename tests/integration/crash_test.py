"""kill -9 at any moment: after the restart only whole versions are visible, and none is lost."""

import collections
import random
import subprocess
import threading
import time

import grpc
import pytest
from client import refusal
from daemon import scaled
from folders import adapter, scaled_adapter
from stubs import v1
from texts import document

KILLS = scaled(8, 200)
RATIOS = [900_000, 500_000, 0]
Reply = v1.Document.State


class Ledger:
    """What the daemon has acknowledged, and the one change that is under way."""

    def __init__(self):
        self.adapters = {}  # document → adapter versions acknowledged
        self.pending = ("", "")  # change, document
        self.touched = set()
        self.answers = {}  # document → tokens, the same before and after every kill
        self.counts = collections.Counter()
        self.next = 0


class Worker(threading.Thread):
    """Does its work again and again until the daemon is gone."""

    def __init__(self, client, ledger, seed):
        super().__init__(daemon=True)
        self.client, self.ledger, self.error = client, ledger, None
        self.stopped = False
        self.draw = random.Random(seed)
        self.start()

    def run(self):
        try:
            while not self.stopped:
                self.work()
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                self.error = error
        except AssertionError as error:
            self.error = error


class Writer(Worker):
    """Ingests, uploads and deletes."""

    def work(self):
        book = self.ledger
        change = self.draw.choice(["ingest", "ingest", "upload", "upload", "upload", "delete"])
        names = [name for name, versions in book.adapters.items()
                 if change != "upload" or versions < 2]
        if change == "ingest" or not names or (change == "delete" and len(names) < 3):
            name, book.next = f"d{book.next}", book.next + 1
            book.pending = ("ingest", name)
            self.client.ingest(document(name, 30), name, ratio_ppm=RATIOS)
            book.adapters[name] = 0
        elif change == "upload":
            name = self.draw.choice(names)
            book.pending = ("upload", name)
            made = self.client.upload(name, scaled_adapter(book.adapters[name] + 1))
            book.adapters[name] = made.version
        else:
            name = self.draw.choice(names)
            book.pending = ("delete", name)
            assert self.client.delete(name).deleted
            del book.adapters[name]
        book.counts[book.pending[0]] += 1
        book.touched.add(name)
        book.pending = ("", "")


class Asker(Worker):
    """Asks what is there; a document may go meanwhile."""

    def work(self):
        book = self.ledger
        names = list(book.adapters)
        if not names:
            time.sleep(0.005)
            return
        name = self.draw.choice(names)
        try:
            tokens = self.client.ask(name, mode=v1.MODE_BASE, max_tokens=2).tokens
        except grpc.RpcError as error:
            gone = error.code() == grpc.StatusCode.NOT_FOUND
            if gone and (name not in book.adapters or book.pending == ("delete", name)):
                return
            raise
        assert book.answers.setdefault(name, tokens) == tokens, name
        book.counts["ask"] += 1


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


def apparent_size(files):
    """The files' lengths, as `du` counts them."""
    if not files:
        return 0
    du = ["du", "--apparent-size", "--block-size=1", "--total", *files]
    total = subprocess.run(du, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    return int(total.split()[0])


def check_files(daemon, client):
    """On the disk lie exactly the files of the registry."""
    status = client.status()
    disk = next(tier for tier in status.tiers if tier.tier == v1.TIER_DISK)
    files = [*daemon.data.rglob("artifacts/*/*")]
    assert disk.used_bytes == sum(kind.bytes for kind in disk.kinds)
    assert apparent_size(files) == disk.used_bytes
    assert not [*daemon.data.rglob("temporary/*")]


def check_ledger(client, book):
    """Of what was acknowledged all is there and whole; of what wasn't, all or nothing."""
    change, pending = book.pending
    listed = client.documents.List(v1.ListDocumentsRequest(page_size=1000)).documents
    names = {one.id for one in listed}
    if change == "delete" and pending not in names:
        del book.adapters[pending]
    assert set(book.adapters) <= names, "a document was lost"
    assert names - set(book.adapters) <= {pending}, "a document came back"
    for name in names:
        if name == pending or name in book.touched:
            if check_document(client, name):
                book.adapters.setdefault(name, 0)
            else:
                assert name not in book.adapters
                client.delete(name)
    for name, versions in book.adapters.items():
        more = (change, pending) == ("upload", name)
        count = client.document(name).adapter_count
        assert versions <= count <= versions + more, "an adapter was lost"
        book.adapters[name] = count
        answer = client.ask(name, mode=v1.MODE_BASE, max_tokens=2).tokens
        assert book.answers.setdefault(name, answer) == answer, name
    book.pending, book.touched = ("", ""), set()


@pytest.mark.timeout(scaled(600, 7200))
def test_a_kill_at_any_moment_of_mixed_work_loses_nothing(make_daemon, capsys):
    # Faults 42 and 75.
    daemon = make_daemon().start()
    draw = random.Random(42)
    book = Ledger()
    for kill in range(KILLS):
        workers = [kind(daemon.client(), book, kill) for kind in (Writer, Asker)]
        time.sleep(draw.uniform(0.0, 0.8))
        daemon.process.kill()
        daemon.process.wait(30)
        for worker in workers:
            worker.stopped = True
            worker.join(60)
            assert not worker.is_alive()
            assert worker.error is None, worker.error
        daemon.kill()

        client = daemon.start().client()
        assert client.status().quarantined == 0
        check_ledger(client, book)
        check_files(daemon, client)
        for name in [*book.adapters][: max(0, len(book.adapters) - 6)]:
            client.delete(name)
            del book.adapters[name]
    done = ", ".join(f"{book.counts[kind]} {kind}" for kind in ("ingest", "upload", "delete", "ask"))
    with capsys.disabled():
        print(f"\n{KILLS} kills, acknowledged: {done}; lost: 0")
    assert sum(book.counts.values()) >= KILLS // 4, "the kills came before anything was done"


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
