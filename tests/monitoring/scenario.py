"""A daemon that gives every metric something to tell, and a Prometheus that scrapes it."""

import contextlib
import json
import math
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import deployed
import grpc
import yaml

sys.path.append(str(deployed.ROOT / "tests/integration"))
from certificates import Authority  # noqa: E402
from client import ask_request, refusal  # noqa: E402
from daemon import Daemon, eventually  # noqa: E402
from folders import adapter, patient_model  # noqa: E402
from texts import document  # noqa: E402

INSTANCE = "docmem-0:7602"
POD = {"namespace": "default", "pod": "docmem-0"}  # as the operator labels what it scrapes
RATE_INTERVAL = "20s"  # what Grafana would put for $__rate_interval
SCRAPES_PER_PHASE = 4
DOCUMENTS = 6
SEQUENCES, QUEUE = 3, 1  # the daemon's limits
QA = [(f"Which door is blue on day {day}?", f"The door {day}.") for day in range(40)]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    """Runs on deploy/prometheus, but scrapes and evaluates every second."""

    def __init__(self, folder, daemon):
        config = yaml.safe_load((deployed.PROMETHEUS / "prometheus.yaml").read_text())
        config["global"] = {"evaluation_interval": "1s"}
        config["rule_files"] = [str(deployed.PROMETHEUS / file) for file in config["rule_files"]]
        [scrape] = config["scrape_configs"]
        scrape |= {"scrape_interval": "1s", "static_configs": [
            {"targets": [daemon.metrics_address], "labels": {"instance": INSTANCE} | POD}]}
        file = folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(config))
        self.url = f"http://127.0.0.1:{free_port()}"
        self._log = (folder / "prometheus.log").open("wb")
        self._process = subprocess.Popen(
            ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder / 'tsdb'}",
             f"--web.listen-address={self.url.removeprefix('http://')}"],
            stdout=self._log, stderr=self._log)
        self.began = time.time()

    def get(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as response:
            return json.load(response)["data"]

    def scrapes(self):
        """How many have been stored; 0 while it doesn't answer yet."""
        assert self._process.poll() is None, f"prometheus ended: see {self._log.name}"
        try:
            found = self.get("query", query="count_over_time(up[1h])")["result"]
        except OSError:
            return 0
        return int(found[0]["value"][1]) if found else 0

    def wait_for_scrapes(self):
        enough = self.scrapes() + SCRAPES_PER_PHASE
        eventually(lambda: self.scrapes() >= enough, timeout=60, every=0.2)

    def history(self, query):
        """Labels and (time, finite value) pairs of each series since the start; the dashboard's
        variables are filled in."""
        query = query.replace("$__rate_interval", RATE_INTERVAL).replace("$instance", ".*")
        found = self.get("query_range", query=query, start=self.began, end=time.time(), step=1)
        series = [(one["metric"], [(at, float(value)) for at, value in one["values"]
                                   if math.isfinite(float(value))]) for one in found["result"]]
        return [(labels, values) for labels, values in series if values]

    def end(self):
        self._process.terminate()
        self._process.wait(30)
        self._log.close()


def fill(client):
    """Documents, one of them pinned, one with an adapter, one in training."""
    for n in range(DOCUMENTS):
        client.ingest(document(n), f"d{n}", pin=n == 0)
    client.upload("d1", adapter())
    client.train("d2", QA, epochs=1000, batch_size=1)


def ask_around(client, until):
    """Questions that need more memory than there is, and some that fail."""
    n = 0
    while not until():
        client.ask(f"d{n % DOCUMENTS}")
        client.score(f"d{n % DOCUMENTS}", "The blue one.")
        refusal(lambda: client.ask("nothing"))
        n += 1


def damage(daemon, client):
    """A question fails on a damaged file, which is quarantined."""
    before = set(daemon.data.rglob("artifacts/*/*.cache"))
    client.ingest(document("damaged"), "damaged")
    [file] = set(daemon.data.rglob("artifacts/*/*.cache")) - before
    file.write_bytes(bytes([file.read_bytes()[0] ^ 0x40]) + file.read_bytes()[1:])
    refusal(lambda: client.ask("damaged"))


def under_way(client):
    queue = client.status().queue
    return queue.running, queue.loading, queue.waiting


def hold(client, prometheus):
    """All slots are taken for a while, a question waits behind them, and others are refused."""
    streams = []

    def asked(n):
        running, *others = under_way(client)
        return running == n if n <= SEQUENCES else running + sum(others) == n

    for n in range(1, SEQUENCES + QUEUE + 1):
        streams.append(client.queries.Ask(ask_request(f"d{n % 2}", max_tokens=100_000)))
        eventually(lambda n=n: asked(n))  # one that loads takes a place in the queue
    enough = prometheus.scrapes() + SCRAPES_PER_PHASE
    while prometheus.scrapes() < enough:
        refusal(lambda: client.ask("d3"))
    for stream in streams:
        stream.cancel()


def play(daemon, authority, prometheus):
    client = daemon.client(
        credentials=grpc.ssl_channel_credentials(authority.certificate.read_bytes()),
        options=[("grpc.ssl_target_name_override", "localhost")])
    prometheus.wait_for_scrapes()
    fill(client)
    enough = prometheus.scrapes() + 3 * SCRAPES_PER_PHASE
    ask_around(client, until=lambda: prometheus.scrapes() >= enough)
    damage(daemon, client)
    hold(client, prometheus)
    prometheus.wait_for_scrapes()


@contextlib.contextmanager
def played(folder):
    """The Prometheus, still running, after all has happened."""
    authority = Authority(folder / "authority")
    pair = authority.issue("docmem")
    daemon = Daemon(folder, "--device-budget", "640KiB", "--checkpoint-seconds", "1",
                    "--max-sequences", SEQUENCES, "--max-queue", QUEUE,
                    "--tls-cert", pair.certificate, "--tls-key", pair.key,
                    model=patient_model(folder / "models"))
    with contextlib.ExitStack() as ends:
        ends.callback(daemon.end)
        prometheus = Prometheus(folder, daemon.start())
        ends.callback(prometheus.end)
        play(daemon, authority, prometheus)
        yield prometheus
    daemon.check_log()
