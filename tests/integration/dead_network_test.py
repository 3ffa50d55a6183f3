"""A client whose packets vanish: no FIN, no RST, only silence. Needs root and Linux's tools."""

import contextlib
import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from daemon import eventually
from texts import document

SLOTS = 2
KEEPALIVE_S = 20 + 10  # a ping after so much silence, and the time for its answer
SLACK_S = 60  # for a busy machine
NO_PROXY = [("grpc.enable_http_proxy", 0)]

# In a network of its own: so many questions, and a text that is half sent.
CLIENT = """
    import sys, threading
    sys.path.insert(0, sys.argv[1])
    from client import Client, ask_request, ingest_messages
    print("started", flush=True)
    client = Client(sys.stdin.readline().strip(), options=[("grpc.enable_http_proxy", 0)])
    streams = [client.queries.Ask(ask_request("d", max_tokens=100_000))
               for _ in range(int(sys.argv[2]))]
    for stream in streams:
        next(stream)
    for stream in streams:
        threading.Thread(target=list, args=(stream,), daemon=True).start()

    def half():
        yield from ingest_messages("Half a text.", "half", end=False)
        threading.Event().wait()

    client.documents.Ingest(half())
    print("asked", flush=True)
    sys.stdin.read()
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=20)


class Network:
    """A process in a network of its own, joined to ours by one cable. Both end with the process,
    and that one with its standard input, so also when the tests are killed."""

    def __init__(self, program, *arguments):
        here, there = (f"docmem{os.getpid() % 10**6}{side}" for side in "ab")
        self._cable = here
        block = os.getpid() % (1 << 14) * 4  # 198.18.0.0/15 is for tests
        self.address = f"198.18.{block >> 8}.{(block & 255) + 1}"
        other = f"198.18.{block >> 8}.{(block & 255) + 2}"
        self._process = subprocess.Popen(
            ["unshare", "--net", sys.executable, "-B", "-c", textwrap.dedent(program),
             Path(__file__).parent, *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self.expect("started")
            ip("link", "add", here, "type", "veth", "peer", "name", there, "netns",
               str(self._process.pid))
            ip("address", "add", f"{self.address}/30", "dev", here)
            ip("link", "set", here, "up")
            self.inside("ip", "address", "add", f"{other}/30", "dev", there)
            self.inside("ip", "link", "set", there, "up")
        except BaseException:
            self.close()
            raise

    def inside(self, *command):
        subprocess.run(["nsenter", f"--net=/proc/{self._process.pid}/ns/net", *command],
                       check=True, capture_output=True, text=True, timeout=20)

    def expect(self, line):
        assert self._process.stdout.readline() == line + "\n"

    def say(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def swallow(self):
        """From now on no packet arrives on either side."""
        for chain in ("INPUT", "OUTPUT"):
            self.inside("iptables", "-w", "-I", chain, "-j", "DROP")

    def close(self):
        self._process.kill()
        self._process.communicate(timeout=20)
        with contextlib.suppress(subprocess.CalledProcessError):
            ip("link", "delete", self._cable)  # dying connections may hold it for minutes


def why_not():
    """What this machine lacks for a network of its own; empty: nothing."""
    tools = [tool for tool in ("unshare", "nsenter", "ip", "iptables") if not shutil.which(tool)]
    if tools:
        return f"needs the programs {', '.join(tools)}"
    probe = ["unshare", "--net", "sh", "-c",
             "ip link add name veth0 type veth peer name veth1 && iptables -I INPUT -j DROP"]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=20, check=False)
    return f"needs root's rights for networks: {done.stderr.strip()}" if done.returncode else ""


@pytest.fixture
def make_network():
    if lacking := why_not():
        pytest.skip(lacking)
    made = []

    def make(*arguments):
        made.append(Network(*arguments))
        return made[-1]

    yield make
    for network in made:
        network.close()


@pytest.mark.parametrize("streams", [
    pytest.param(4, id="answers"),  # what was sent isn't acknowledged
    pytest.param(0, id="silence", marks=pytest.mark.long),  # only a ping finds out
])
def test_a_client_behind_a_dead_network_gives_back_everything(
        make_daemon, make_network, patient, streams):
    # Fault 55.
    network = make_network(CLIENT, streams)
    daemon = make_daemon("--listen", f"{network.address}:0", "--insecure", "--no-auth",
                         "--max-sequences", SLOTS, "--drain-seconds", 600, model=patient).start()
    client = daemon.client(options=NO_PROXY)
    client.ingest(document("d"), "d")
    expected = client.ask("d")
    files = daemon.open_files()
    network.say(daemon.address)
    network.expect("asked")

    def counts():
        queue = client.status().queue
        leases = sum(item.leases for item in client.residents())
        return queue.running, queue.waiting, leases, daemon.open_files() - files

    running = min(streams, SLOTS)
    eventually(lambda: counts() == (running, streams - running, running, 1))
    network.swallow()
    began = time.monotonic()
    eventually(lambda: counts() == (0, 0, 0, 0), KEEPALIVE_S + SLACK_S)
    print(f"all was free {time.monotonic() - began:.1f} s after the last packet")
    answer = client.ask("d")
    assert (answer.tokens, answer.text) == (expected.tokens, expected.text)
    assert answer.finished.seconds.queue < 10
    assert daemon.stop() == 0  # it would wait for an open call, such as the ingestion
