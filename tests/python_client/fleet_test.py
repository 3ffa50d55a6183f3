"""The shipped HAProxy configuration before three replicas, asked by the Python client."""

import collections
import contextlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import docmem
import package
import pytest
from daemon import Daemon, eventually
from docmem import v1
from folders import patient_model
from texts import document

sys.path.insert(0, str(package.ROOT / "tests"))
import with_postgres  # noqa: E402

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
pytestmark = [
    pytest.mark.skipif(HAPROXY is None, reason="HAProxy isn't installed"),
    pytest.mark.skipif(with_postgres.programs() is None, reason="PostgreSQL isn't installed"),
]
DOCUMENTS = [f"d{number}" for number in range(24)]
ANSWERED = 'docmem_tokens_out_total'


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Proxy:
    """HAProxy on the configuration of deploy/, with other addresses only."""

    def __init__(self, folder, replicas):
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._statistics = free_port()
        text = (package.ROOT / "deploy/haproxy/haproxy.cfg").read_text()
        text = text.replace("bind :7600", f"bind 127.0.0.1:{self.port}")
        text = text.replace("127.0.0.1:8404", f"127.0.0.1:{self._statistics}")
        servers = [f"  server replica-{number} {replica.address} "
                   f"check port {replica.health_address.rsplit(':', 1)[1]}"
                   for number, replica in enumerate(replicas, 1)]
        text, count = re.subn(r"(?m)^  server replica-1 .*\n(  server .*\n)*",
                              "\n".join(servers) + "\n", text)
        assert count == 1
        folder.mkdir(exist_ok=True)
        (folder / "haproxy.cfg").write_text(text)
        self._log = (folder / "log").open("ab")
        self.process = subprocess.Popen([HAPROXY, "-f", folder / "haproxy.cfg"],
                                        stdout=self._log, stderr=self._log)

    def __enter__(self):
        eventually(self._accepts)
        return self

    def _accepts(self):
        assert self.process.poll() is None, "HAProxy ended"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self._log.close()

    def up(self):
        """Which servers it takes for ready."""
        with socket.create_connection(("127.0.0.1", self._statistics), 5) as connection:
            connection.sendall(b"GET /;csv HTTP/1.0\r\n\r\n")
            text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        rows = [line.split(",") for line in text.splitlines() if line.startswith("replicas,replica")]
        return {row[1] for row in rows if row[17].startswith("UP")}


@pytest.fixture(scope="module")
def make_replica(tmp_path_factory):
    with (tempfile.TemporaryDirectory(prefix="docmem-postgres-") as place,
          with_postgres.Server(Path(place), with_postgres.programs()) as postgres,
          contextlib.ExitStack() as stack):
        folder = tmp_path_factory.mktemp("fleet")
        volume = folder / "volume"
        volume.mkdir()
        model = patient_model(folder / "models")

        def make(name):
            daemon = Daemon(folder / name, "--registry", postgres.address, "--artifacts", volume,
                            "--drain-seconds", "5", model=model)
            (folder / name).mkdir()
            stack.callback(daemon.end)
            return daemon.start()

        yield make


@pytest.fixture(scope="module")
def replicas(make_replica):
    return [make_replica(f"replica-{number}") for number in (1, 2, 3)]


@pytest.fixture(scope="module")
def remembered(replicas):
    """The documents, ingested through the first replica; their answers."""
    with docmem.Client(replicas[0].address) as client:
        for name in DOCUMENTS:
            client.documents.ingest(document(name), name, ratios=[0.5])
        return {name: ask(client, name) for name in DOCUMENTS}


@pytest.fixture
def proxy(tmp_path, replicas, remembered):
    with Proxy(tmp_path / "proxy", replicas) as proxy:
        eventually(lambda: len(proxy.up()) == len(replicas))
        yield proxy


def ask(client, name, tokens=4):
    return "".join(client.ask(name, "Which door is blue?", max_tokens=tokens))


def answered(replica):
    return sum(value for name, value in replica.metrics().items() if name.startswith(ANSWERED))


def homes(address, replicas, names=DOCUMENTS):
    """Which replica answers each document."""
    found = {}
    with docmem.Client(address) as client:
        for name in names:
            before = [answered(replica) for replica in replicas]
            ask(client, name)
            after = [answered(replica) for replica in replicas]
            [found[name]] = [number for number, (was, now) in enumerate(zip(before, after))
                             if now > was]
    return found


def test_a_document_stays_with_its_replica_and_documents_spread(proxy, replicas):
    first = homes(proxy.address, replicas)
    assert homes(proxy.address, replicas) == first
    counts = collections.Counter(first.values())
    assert len(counts) == len(replicas) and max(counts.values()) <= 16, counts


def test_calls_without_a_document_are_answered_by_any(proxy):
    with docmem.Client(proxy.address) as client:
        assert {found.id for found in client.documents.list()} >= set(DOCUMENTS)
        assert client.admin.status().phase == v1.GetStatusResponse.PHASE_SERVING


def test_an_ingestion_comes_through_and_is_everywhere_at_once(proxy, replicas):
    with docmem.Client(proxy.address) as client:
        client.documents.ingest(document("new") * 20, "new", ratios=[0.9])
        expected = ask(client, "new")
    for replica in replicas:
        with docmem.Client(replica.address) as client:
            assert ask(client, "new") == expected


def test_a_hot_document_spills_over(proxy, replicas, remembered):
    before = [answered(replica) for replica in replicas]
    with docmem.Client(proxy.address) as client:
        answers, threads = [], []
        for _ in range(12):
            threads.append(threading.Thread(target=lambda: answers.append(ask(client, "d0", 300))))
            threads[-1].start()
        for thread in threads:
            thread.join(60)
    assert len(set(answers)) == 1 and len(answers) == 12
    assert answers[0].startswith(remembered["d0"])
    after = [answered(replica) for replica in replicas]
    assert sum(now > was for was, now in zip(before, after)) >= 2


def test_a_fourth_replica_takes_a_share_and_none_moves_between_the_others(
        tmp_path, make_replica, proxy, replicas):
    before = homes(proxy.address, replicas)
    fourth = make_replica("replica-4")
    try:
        with Proxy(tmp_path / "larger", [*replicas, fourth]) as larger:
            eventually(lambda: len(larger.up()) == 4)
            after = homes(larger.address, [*replicas, fourth])
    finally:
        fourth.stop()
    moved = {name for name in DOCUMENTS if before[name] != after[name]}
    assert all(after[name] == 3 for name in moved)
    print(f"{len(moved)} of {len(DOCUMENTS)} moved")
    assert 0 < len(moved) <= 0.5 * len(DOCUMENTS)


class Load:
    """Clients that ask on and on until they are stopped."""

    def __init__(self, address, remembered, clients=4):
        self.wrong, self.failures, self.done = [], [], 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(address, remembered, number))
                         for number in range(clients)]

    def _ask(self, address, remembered, number):
        with docmem.Client(address) as client:
            for turn in range(10**6):
                if self._stop.is_set():
                    return
                name = DOCUMENTS[(turn * 7 + number) % len(DOCUMENTS)]
                try:
                    if ask(client, name) != remembered[name]:
                        self.wrong.append(name)
                    self.done += 1
                except docmem.DocMemError as error:
                    self.failures.append(error)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(60)


def test_a_replica_that_drains_costs_no_call(proxy, replicas, remembered):
    with Load(proxy.address, remembered) as load:
        eventually(lambda: load.done > 20)
        with docmem.Client(replicas[2].address) as client:
            client.admin.drain()
            eventually(lambda: "replica-3" not in proxy.up())
            before, done = answered(replicas[2]), load.done
            eventually(lambda: load.done > done + 20)
            assert answered(replicas[2]) == before
            client.admin.drain(undo=True)
        eventually(lambda: "replica-3" in proxy.up())
    assert not load.wrong and not load.failures, load.failures[:3]


def test_a_killed_replica_gives_no_wrong_answer(proxy, replicas, remembered):
    with Load(proxy.address, remembered) as load:
        eventually(lambda: load.done > 20)
        replicas[2].kill()
        began = time.monotonic()
        eventually(lambda: "replica-3" not in proxy.up())
        assert time.monotonic() - began < 10
        done = load.done
        eventually(lambda: load.done > done + 40)
    assert not load.wrong
    assert all(isinstance(error, docmem.UnavailableError) for error in load.failures), load.failures
    print(f"{load.done} answers, {len(load.failures)} unavailable")


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx isn't installed")
def test_nginx_takes_its_configuration(tmp_path):
    text = (package.ROOT / "deploy/haproxy/nginx.conf").read_text()
    text = re.sub(r"docmem-\d\.docmem-nodes", "127.0.0.1", text)
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid;\nerror_log stderr;\n{text}")
    subprocess.run(["nginx", "-t", "-c", tmp_path / "nginx.conf"], check=True)
