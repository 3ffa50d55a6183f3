"""Runs docmemd and the command line client docmem for the demo."""

import json
import signal
import socket
import subprocess
import time
from pathlib import Path

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 30
START_ATTEMPTS = 3


class ProgramError(Exception):
    """docmemd or docmem failed; the message is theirs."""


def free_ports(count):
    """Ports that were free a moment ago, hence the attempts at a start."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Daemon:
    """One docmemd on loopback. Use as a context manager: leaving it ends the process."""

    def __init__(self, binaries: Path, model: Path, data: Path, log: Path):
        self._binaries = binaries
        self._model = model
        self._data = data
        self._log = log
        self._process = None
        self._address = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def start(self):
        """Returns GetStatusResponse once questions are served."""
        for attempt in range(START_ATTEMPTS):
            self._launch()
            status = self._wait_until_serving()
            if status:
                return status
            if "in use" not in self.log_tail() or attempt + 1 == START_ATTEMPTS:
                break
        raise ProgramError(f"docmemd ended while starting:\n{self.log_tail()}")

    def stop(self):
        """Ends it by SIGTERM; returns its exit code."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise ProgramError(f"docmemd goes on {STOP_TIMEOUT_S} s after SIGTERM") from error

    def call(self, *arguments):
        """Runs docmem; returns its JSON output."""
        command = [self._binaries / "docmem", "--address", self._address, "--output", "json"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ProgramError(f"docmem {arguments[0]}: {done.stderr.strip() or done.returncode}")
        try:
            return json.loads(done.stdout)
        except ValueError as error:
            raise ProgramError(f"docmem {arguments[0]}: output isn't JSON ({error})") from error

    def log_tail(self):
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-10:])

    def _launch(self):
        ports = free_ports(3)
        listen, health, metrics = (f"127.0.0.1:{port}" for port in ports)
        command = [self._binaries / "docmemd", "--model", self._model, "--data", self._data]
        command += ["--listen", listen, "--health-listen", health, "--metrics-listen", metrics]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._address = listen

    def _wait_until_serving(self):
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                return None
            try:
                status = self.call("status")
                if status["phase"] == "PHASE_SERVING":
                    return status
            except ProgramError:
                pass
            time.sleep(0.1)
        raise ProgramError(f"docmemd isn't ready after {START_TIMEOUT_S} s:\n{self.log_tail()}")
