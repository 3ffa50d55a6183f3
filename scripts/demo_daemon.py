"""Runs docmemd and the command line client docmem for the demo and the benchmarks."""

import json
import signal
import subprocess
import time
from pathlib import Path

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 30
POLL_S = 0.05
ANY_PORT = "127.0.0.1:0"


class ProgramError(Exception):
    """docmemd or docmem failed; the message is theirs."""


def message_of(error_output):
    """The message in the JSON that docmem writes to standard error when it fails."""
    try:
        return json.loads(error_output)["error"]["message"]
    except (ValueError, KeyError):
        return error_output.strip() or "failed without a message"


class Daemon:
    """One docmemd on loopback. Use as a context manager: leaving it ends the process."""

    def __init__(self, binaries: Path, model: Path, folder: Path, *options: str):
        """Its data, log and addresses go to `folder`; `options` are further ones of docmemd."""
        self._binaries = binaries
        self._log = folder / "docmemd.log"
        self._addresses = folder / "addresses.json"
        self._command = [binaries / "docmemd", "--model", model, "--data", folder / "data"]
        for option in ("--listen", "--health-listen", "--metrics-listen"):
            self._command += [option, ANY_PORT]
        self._command += ["--addresses-file", self._addresses, *options]
        self._process = None
        self._address = None
        self._metrics = self._health = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def address(self):
        return self._address

    @property
    def metrics_address(self):
        return self._metrics

    @property
    def health_address(self):
        return self._health

    @property
    def pid(self):
        return self._process.pid

    def start(self):
        """Returns GetStatusResponse once questions are served."""
        self._addresses.unlink(missing_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise ProgramError(f"docmemd ended while starting:\n{self._log_tail()}")
            if self._addresses.is_file():
                addresses = json.loads(self._addresses.read_text())
                self._address, self._metrics = addresses["grpc"], addresses["metrics"]
                self._health = addresses["health"]
                status = self.call("status")
                if status["phase"] == "PHASE_SERVING":
                    return status
            time.sleep(POLL_S)
        raise ProgramError(f"docmemd isn't ready after {START_TIMEOUT_S} s:\n{self._log_tail()}")

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
            raise ProgramError(f"docmem {arguments[0]}: {message_of(done.stderr)}")
        try:
            return json.loads(done.stdout)
        except ValueError as error:
            raise ProgramError(f"docmem {arguments[0]}: output isn't JSON ({error})") from error

    def _log_tail(self):
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-10:])
