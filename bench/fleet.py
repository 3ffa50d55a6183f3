#!/usr/bin/env python3
"""Asks one docmemd as many questions as it answers, and then several behind HAProxy.

    .venv/bin/python bench/fleet.py

All have one registry (PostgreSQL) and one place for their files (a folder), as a fleet has, and a
budget for a third of the documents each. Prints a table: answers, how many memories were loaded
when they were asked for, time to the first token. Needs PostgreSQL and HAProxy; the cores are
divided among the replicas, so it isn't they that make a fleet faster here.
"""

import argparse
import contextlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace

from served import FOLDER, ROOT, Daemon, Served, add_options, failed

sys.path.append(str(ROOT / "tests"))

import with_postgres  # noqa: E402  (behind the path)

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
SENTENCES = 80  # about 830 tokens
ANSWER_TOKENS = 16
CLIENTS = 12


class Shared(Served):
    """Documents in a registry and a folder that replicas share; each replica has copies."""

    def __init__(self, options, database, volume, count):
        self._common = ["--registry", database.address, "--artifacts", str(volume)]
        super().__init__(options, "fleet-0", count, SENTENCES)

    @contextlib.contextmanager
    def daemon(self, *further, budget=None):
        with super().daemon(*self._common, *further, budget=budget) as daemon:
            yield daemon

    @contextlib.contextmanager
    def replicas(self, count):
        """Started ones, each with a data folder of its own and its part of the cores."""
        options = self.options
        with contextlib.ExitStack() as ends:
            started = []
            for number in range(1, count + 1):
                folder = FOLDER / f"fleet-{number}"
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                ends.callback(shutil.rmtree, folder)
                daemon = ends.enter_context(Daemon(
                    options.build / "bin", options.model, folder, *self._common,
                    "--threads", str(max(1, options.threads // count)), "--dtype", options.dtype,
                    "--device-budget", str(self.bytes // 3)))
                daemon.start()
                started.append(daemon)
            yield started


@contextlib.contextmanager
def router(replicas, folder):
    """The address of a HAProxy with the shipped configuration in front of the replicas."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    text = (ROOT / "deploy/haproxy/haproxy.cfg").read_text()
    text = re.sub(r"^ +(user|group|stats socket) .*\n", "", text, flags=re.MULTILINE)
    for number in (1, 2, 3):
        if number > len(replicas):
            text = re.sub(rf"^ +server replica{number} .*\n", "", text, flags=re.MULTILINE)
            continue
        replica = replicas[number - 1]
        text = text.replace(f"10.0.0.1{number}:7600 id {number} check port 7601",
                            f"{replica.address} id {number} check port {replica.health_address.rpartition(':')[2]}")
        text = text.replace(f"10.0.0.1{number}:7600", replica.address)
    text = text.replace("bind 127.0.0.1:7600", f"bind {address}")
    text = text.replace("bind 127.0.0.1:8405", f"bind {folder}/metrics")
    file = folder / "haproxy.cfg"
    file.write_text(text)
    with (folder / "haproxy.log").open("wb") as log:
        process = subprocess.Popen([HAPROXY, "-f", file], stdout=log, stderr=log)
    try:
        time.sleep(3)  # until each replica was asked whether it is ready
        if process.poll() is not None:
            sys.exit(f"haproxy ended:\n{(folder / 'haproxy.log').read_text()}")
        yield address
    finally:
        process.terminate()
        process.wait(30)


def counted(replicas, name):
    """A counter of the device tier, of all replicas together."""
    total = 0.0
    for replica in replicas:
        with urllib.request.urlopen(f"http://{replica.metrics_address}/metrics") as answer:
            lines = re.findall(rf'^{name}{{[^}}]*tier="device"[^}}]*}} (\S+)$',
                               answer.read().decode(), re.MULTILINE)
        total += sum(map(float, lines))
    return total


def measure(served, count, seconds, folder):
    """What `count` replicas answer when all documents are asked alike, once they are warm."""
    with served.replicas(count) as replicas, router(replicas, folder) as address:
        asked = SimpleNamespace(address=address)
        served.load(asked, clients=CLIENTS, seconds=seconds / 2, max_tokens=ANSWER_TOKENS)
        before = [counted(replicas, name) for name in ("docmem_lookups_total", "docmem_hits_total")]
        report = served.load(asked, clients=CLIENTS, seconds=seconds, max_tokens=ANSWER_TOKENS)
        lookups, hits = (counted(replicas, name) - earlier for name, earlier in zip(
            ("docmem_lookups_total", "docmem_hits_total"), before))
    if failed(report):
        sys.exit(f"questions failed: {report['errors']}")
    return report, hits / lookups


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=48, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=40, help="of each measurement (%(default)s)")
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2, 3])
    add_options(parser)
    options = parser.parse_args()
    if not HAPROXY or not with_postgres.programs():
        sys.exit("needs HAProxy and PostgreSQL: apt-get install haproxy postgresql")
    with tempfile.TemporaryDirectory(prefix="docmem-fleet-") as place:
        folder = Path(place)
        (folder / "volume").mkdir()
        (folder / "database").mkdir()
        folder.chmod(0o755)  # PostgreSQL's user has to reach it
        with with_postgres.Server(folder / "database", with_postgres.programs()) as database:
            served = Shared(options, database, folder / "volume", options.documents)
            print("| replicas | answers/s | tokens/s | already loaded | first token, median | p95 |\n"
                  "| --- | --- | --- | --- | --- | --- |")
            for count in options.replicas:
                report, hit_rate = measure(served, count, options.seconds, folder)
                first = report["first_token_ms"]
                print(f"| {count} | {report['questions_per_second']:.1f} "
                      f"| {report['tokens_per_second']:.0f} | {100 * hit_rate:.0f} % "
                      f"| {first['p50']:.0f} ms | {first['p95']:.0f} ms |", flush=True)
            served.delete()


if __name__ == "__main__":
    main()
