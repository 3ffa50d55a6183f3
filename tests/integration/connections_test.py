"""Connections: keepalive, clients that vanish, hang, or don't read."""

import os
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from client import Client, ask_request, ingest_messages, refused
from daemon import SERVING, eventually, scaled
from stubs import v1
from texts import document

ENDLESS = 100_000
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, GOAWAY = 4, 6, 7
ACK = 1


@pytest.fixture(scope="module")
def daemon(make_shared_daemon, patient):
    daemon = make_shared_daemon(model=patient).start()
    daemon.client().ingest(document("d"), "d")
    return daemon


@pytest.fixture(scope="module")
def client(daemon):
    return daemon.client()


def frame(kind, flags=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + b"\0\0\0\0" + payload


class Http2:
    """Just enough of HTTP/2 to send pings and see what comes back."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=20)
        self.socket.sendall(PREFACE + frame(SETTINGS))
        self._buffer = b""

    def ping(self):
        self.socket.sendall(frame(PING, payload=b"8 bytes."))

    def frames(self, seconds):
        """Kinds (and flags) of the frames that come within this time."""
        seen, deadline = [], time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(65536)
            except TimeoutError:
                break
            except ConnectionError:
                return [*seen, (GOAWAY, 0)]
            if not data:
                return [*seen, (GOAWAY, 0)]
            self._buffer += data
            while len(self._buffer) >= 9:
                size = int.from_bytes(self._buffer[:3], "big")
                if len(self._buffer) < 9 + size:
                    break
                seen.append((self._buffer[3], self._buffer[4]))
                self._buffer = self._buffer[9 + size :]
        return seen


def test_an_idle_client_may_ping_every_few_seconds(daemon):
    # Fault 46: by default the third ping of an idle client ends its connection.
    connection = Http2(daemon.address)
    answered = 0
    for _ in range(scaled(4, 12)):
        connection.ping()
        seen = connection.frames(5.3)
        assert not [kind for kind, _ in seen if kind == GOAWAY]
        answered += (PING, ACK) in seen
    assert answered == scaled(4, 12)
    connection.socket.close()


def test_a_client_that_floods_with_pings_is_sent_away(daemon):
    connection = Http2(daemon.address)
    seen = []
    for _ in range(40):
        try:
            connection.ping()
        except ConnectionError:
            seen.append((GOAWAY, 0))
            break
        seen += connection.frames(0.02)
    seen += connection.frames(2)
    assert (GOAWAY, 0) in seen
    assert daemon.readiness() == SERVING


def test_garbage_on_the_port_harms_nobody(daemon, client):
    for data in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, PREFACE + b"\xff" * 1000,
                 PREFACE + frame(SETTINGS) + frame(1, 4, b"\x80" * 50)):
        host, port = daemon.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(data)
    assert client.ask("d").finished


CLIENT = """
    import sys
    sys.path.insert(0, sys.argv[1])
    from client import Client, ask_request
    client = Client(sys.argv[2])
    streams = [client.queries.Ask(ask_request("d", max_tokens=100_000)) for _ in range(4)]
    for stream in streams:
        next(stream), next(stream)
    print("running", flush=True)
    sys.stdin.read()
"""


def running(client):
    return client.status().queue.running


def test_a_killed_client_frees_what_it_used(daemon, client):
    # Fault 55.
    command = [sys.executable, "-B", "-c", textwrap.dedent(CLIENT),
               str(Path(__file__).parent), daemon.address]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as gone:
        assert gone.stdout.readline() == "running\n"
        assert running(client) == 4
        os.kill(gone.pid, signal.SIGKILL)
        gone.wait(10)
        eventually(lambda: running(client) == 0, 20)
    eventually(lambda: not any(item.leases for item in client.residents()))


class Hole:
    """A proxy that can stop passing anything on, without closing."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self._target = (host, int(port))
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow(self):
        self._open.clear()

    def close(self):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                inside, _ = self._listener.accept()
            except OSError:
                return
            outside = socket.create_connection(self._target)
            for pair in ((inside, outside), (outside, inside)):
                threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source, target):
        try:
            while data := source.recv(65536):
                self._open.wait()
                target.sendall(data)
        except OSError:
            return


@pytest.mark.long
def test_a_client_behind_a_dead_network_is_noticed(daemon, client):
    # Fault 55: keepalive 20 s, its answer awaited for 10 s.
    hole = Hole(daemon.address)
    lost = Client(hole.address)
    stream = lost.queries.Ask(ask_request("d", max_tokens=ENDLESS))
    next(stream), next(stream)
    assert running(client) == 1
    hole.swallow()
    eventually(lambda: running(client) == 0, 60)
    hole.close()
    lost.close()


@pytest.mark.long
def test_a_client_that_doesnt_read_is_cut(daemon, client):
    window = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 4096)]
    lazy = daemon.client(options=window)  # it doesn't grow, so it is full soon
    stream = lazy.queries.Ask(ask_request("d", max_tokens=ENDLESS), timeout=200)
    next(stream)
    eventually(lambda: running(client) == 1)
    began = time.monotonic()
    eventually(lambda: running(client) == 0, 120)
    assert time.monotonic() - began > 25
    refused(lambda: stream, "UNAVAILABLE", "SLOW_CLIENT")


@pytest.mark.long
def test_an_idle_connection_and_a_silent_call_with_keepalive_survive(daemon):
    # Fault 46.
    options = [("grpc.keepalive_time_ms", 10_000), ("grpc.keepalive_permit_without_calls", 1),
               ("grpc.http2.max_pings_without_data", 0)]
    idle, silent = daemon.client(options=options), daemon.client(options=options)
    changes = []
    assert idle.status()
    idle.channel.subscribe(changes.append)
    go_on = threading.Event()

    def slowly():
        *parts, end = ingest_messages(document("slow"), "slow")
        yield from parts
        go_on.wait(150)
        yield end

    call = silent.documents.Ingest(slowly(), timeout=300)
    time.sleep(90)
    go_on.set()
    assert [*call][-1].result.document.id == "slow"
    assert idle.ask("d").finished
    assert len(changes) <= 1, changes


def test_many_clients_at_once_are_all_answered(daemon):
    clients = [daemon.client() for _ in range(16)]
    done = []

    def work(one):
        for _ in range(scaled(2, 20)):
            done.append(one.ask("d", max_tokens=4).finished.answer_tokens)
            assert one.status().phase == v1.GetStatusResponse.PHASE_SERVING

    threads = [threading.Thread(target=work, args=(one,), daemon=True) for one in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert done == [4] * (16 * scaled(2, 20))
