"""Starts, watches and ends docmemd processes. Every wait is bounded."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import grpc
from client import Client
from grpc_health.v1 import health_pb2, health_pb2_grpc

ROOT = Path(__file__).resolve().parents[2]
BINARIES = Path(os.environ.get("DOCMEM_BIN_DIR", ROOT / "build/release/bin"))
TINY_LLAMA = ROOT / "tests/reference/models/tiny-llama"

LONG = os.environ.get("DOCMEM_LONG") == "1"
# A sanitizer's own memory, several times the daemon's, counts in its resident set.
MEMORY_SLACK = 8 if os.environ.get("DOCMEM_SANITIZE") else 1
# It slows the daemon down as well.
TIME_SLACK = 10 if os.environ.get("DOCMEM_SANITIZE") else 1
# The tests' own variables, such as DOCMEM_DATA, are settings to a daemon.
SETTING_FREE = {k: v for k, v in os.environ.items() if not k.startswith("DOCMEM_")}
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 60
ANY_PORT = "127.0.0.1:0"
DEFAULTS = {
    "--listen": ANY_PORT,
    "--health-listen": ANY_PORT,
    "--metrics-listen": ANY_PORT,
    "--device-budget": "64MiB",
    "--kv-budget": "1GiB",  # for a few answers without end
    "--dtype": "float32",
}

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def target(link):
    try:
        return os.readlink(link)
    except FileNotFoundError:
        return ""  # closed meanwhile


def scaled(short, long):
    """Counts and times: short every day, long with `./dev test --long`."""
    return long if LONG else short


def eventually(condition, timeout=30.0, every=0.02):
    """Waits until `condition()` is true and returns its value."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {timeout} s: {condition}"
        time.sleep(every)


class Daemon:
    """One docmemd on loopback ports of its own choice, on one data folder. Restartable."""

    def __init__(self, folder, *options, model=TINY_LLAMA, environment=None):
        self.folder = Path(folder)
        self.data = self.folder / "data"
        self.log = self.folder / "docmemd.log"
        self.process = None
        self._addresses_file = self.folder / "addresses.json"
        self._addresses = {}
        self._clients = []
        self._environment = {**SETTING_FREE, **(environment or {})}
        self._command = [BINARIES / "docmemd", "--model", model, "--threads", "1"]
        self._command += ["--addresses-file", self._addresses_file]
        for name, value in {**DEFAULTS, "--data": self.data}.items():
            if name not in options:
                self._command += [name, value]
        self._command += [str(option) for option in options]

    def launch(self):
        """Starts the process; returns when its listeners are open or it has ended."""
        self._addresses_file.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env=self._environment
            )
        eventually(
            lambda: self._addresses_file.exists() or self.process.poll() is not None,
            START_TIMEOUT_S,
            every=0.005,
        )
        if self._addresses_file.exists():
            self._addresses = json.loads(self._addresses_file.read_text())
        return self

    def start(self):
        """Starts the process and waits until it serves."""
        self.launch()
        self.wait_until_ready()
        return self

    def wait_until_ready(self):
        def ready():
            assert self.process.poll() is None, f"docmemd ended:\n{self.log.read_text()[-3000:]}"
            return self.readiness() == SERVING

        eventually(ready, START_TIMEOUT_S)

    def refusal(self):
        """For a start that must fail: (exit code, standard error)."""
        began = self.log.stat().st_size if self.log.exists() else 0
        self.launch()
        code = self.process.wait(START_TIMEOUT_S)
        return code, self.log.read_bytes()[began:].decode()

    @property
    def address(self):
        return self._addresses["grpc"]

    @property
    def health_address(self):
        return self._addresses["health"]

    @property
    def metrics_address(self):
        return self._addresses["metrics"]

    def client(self, **options):
        client = Client(self.address, **options)
        self._clients.append(client)
        return client

    def health(self, service, timeout=10):
        with grpc.insecure_channel(self.health_address) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            return stub.Check(
                health_pb2.HealthCheckRequest(service=service), timeout=timeout).status

    def readiness(self):
        return self.health("")

    def liveness(self, timeout=10):
        return self.health("docmem.liveness", timeout)

    def metrics(self):
        """Sample name with labels → value."""
        samples = {}
        for line in self.metrics_text().splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                samples[name] = float(value)
        return samples

    def metrics_text(self):
        url = f"http://{self.metrics_address}/metrics"
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.read().decode()

    def log_lines(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def resident_bytes(self):
        return self._memory("VmRSS")

    def peak_bytes(self):
        """The most that was resident since the process began."""
        return self._memory("VmHWM")

    def _memory(self, name):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {name}")

    def open_files(self):
        """Without the registry's: up to four readers stay open for the next look-ups."""
        links = Path(f"/proc/{self.process.pid}/fd").iterdir()
        return sum("/registry.db" not in target(link) for link in links)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout=STOP_TIMEOUT_S):
        return self.process.wait(timeout)

    def stop(self):
        """Ends it by SIGTERM; returns its exit code."""
        self.terminate()
        code = self.wait()
        self._close_clients()
        return code

    def kill(self):
        self.process.kill()
        self.process.wait(STOP_TIMEOUT_S)
        self._close_clients()

    def restart(self, gently=True):
        if gently:
            assert self.stop() == 0
        else:
            self.kill()
        return self.start()

    def end(self):
        """Whatever happened before: no process and no channel stays behind."""
        if self.process and self.process.poll() is None:
            self.kill()
        self._close_clients()

    def check_log(self):
        """Fails when a sanitizer reported something; a killed process can't say so itself."""
        log = self.log.read_text(errors="replace") if self.log.exists() else ""
        assert "Sanitizer" not in log, log[-8000:]

    def _close_clients(self):
        for client in self._clients:
            client.close()
        self._clients.clear()
