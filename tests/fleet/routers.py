"""HAProxy and nginx with the configurations that deploy/ ships, at addresses of a test."""

import csv
import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from daemon import ROOT, eventually
from replicas import address_of, free_port

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
SHIPPED = ROOT / "deploy/haproxy"
_SERVER = re.compile(r"^ +server replica\d.*\n", re.MULTILINE)


def running(command, log, environment=None):
    """A process that writes to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, env=environment)


def _servers(line, numbers):
    """The first one's line, for all of `numbers`; the others' lines go."""
    if "replica1 " not in line:
        return ""
    return "".join(
        line.replace("replica1", f"replica{number}").replace("10.0.0.11", f"10.0.0.1{number}")
        .replace("id 1 ", f"id {number} ") for number in numbers)


class _Router:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True)
        self.log = self.folder / "log"
        self.address = f"127.0.0.1:{free_port()}"
        self.process = None

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        host, port = self.address.rsplit(":", 1)
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
            return True
        except OSError:
            return False

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)


class Haproxy(_Router):
    """A master with a worker, as Debian's unit has it. `change` gets and returns the text; `nodes`
    is the headless service, as in Kubernetes."""

    def __init__(self, folder, fleet, change=lambda text: text, numbers=(1, 2, 3), nodes=None):
        super().__init__(folder)
        self._environment = os.environ | ({"NODES": nodes} if nodes else {})
        self.metrics_address = f"127.0.0.1:{free_port()}"
        self._fleet, self._change = fleet, change
        self._file = self.folder / "haproxy.cfg"
        self._socket = self.folder / "socket"
        self.configure(numbers)

    def configure(self, numbers):
        """Writes the configuration for these replicas."""
        text = (SHIPPED / "haproxy.cfg").read_text()
        if os.geteuid() != 0:  # then it is no other user's process anyway
            text = re.sub(r"^ +(user|group) haproxy\n", "", text, flags=re.MULTILINE)
        text = _SERVER.sub(lambda shown: _servers(shown[0], numbers), text)
        text = self._change(text)
        text = re.sub(r"10\.0\.0\.1(\d)", lambda match: address_of(int(match[1])), text)
        text = re.sub(r"((?:server|server-template) .*):7600", rf"\1:{self._fleet.port}", text)
        text = text.replace("port 7601", f"port {self._fleet.port + 1}")
        text = re.sub(r"bind (127\.0\.0\.1)?:7600", f"bind {self.address}", text)
        text = re.sub(r"bind (127\.0\.0\.1)?:8405", f"bind {self.metrics_address}", text)
        text = text.replace("/run/haproxy/docmem.sock", str(self._socket))
        self._file.write_text(text)

    def check(self):
        """What `haproxy -c` says against the configuration."""
        done = subprocess.run([HAPROXY, "-c", "-f", self._file], capture_output=True, text=True,
                              timeout=30, check=False, env=self._environment)
        return done.stdout + done.stderr if done.returncode or "WARNING" in done.stderr else ""

    def start(self):
        self.process = running([HAPROXY, "-W", "-f", self._file], self.log, self._environment)
        eventually(lambda: self.answers() and self._worker())
        self.wait_until_checked()
        return self

    def reload(self, numbers):
        """As `systemctl reload haproxy` does."""
        self.configure(numbers)
        before = self._worker()
        self.process.send_signal(signal.SIGUSR2)
        eventually(lambda: self._worker() not in (None, before))
        self.wait_until_checked()

    def wait_until_checked(self):
        """Every server with an address was asked once."""
        eventually(lambda: all(row["check_status"] not in ("", "INI") for row in self._rows()
                               if not row["status"].startswith("MAINT")))

    def command(self, line):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(self._socket))
            connection.sendall(f"{line}\n".encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    def states(self):
        """Replica, or its name, → UP, NOLB (not ready), DRAIN, DOWN, MAINT (no address)."""
        names = {f"replica{number}": number for number in range(10)}
        return {names.get(row["svname"], row["svname"]): row["status"].split()[0]
                for row in self._rows()}

    def metrics(self):
        return self._get("metrics")

    def ready(self):
        """What a probe of Kubernetes would be told."""
        try:
            return self._get("ready") is not None
        except urllib.error.HTTPError as error:
            assert error.code == 503
            return False

    def _get(self, path):
        with urllib.request.urlopen(f"http://{self.metrics_address}/{path}", timeout=10) as got:
            return got.read().decode()

    def _rows(self):
        text = self.command("show stat").removeprefix("# ")
        return [row for row in csv.DictReader(text.splitlines())
                if row["pxname"] == "documents" and row["svname"] not in ("FRONTEND", "BACKEND")]

    def _worker(self):
        try:
            return re.search(r"^Pid: (\d+)", self.command("show info"), re.MULTILINE)[1]
        except (OSError, TypeError):
            return None


class Nginx(_Router):
    def __init__(self, folder, fleet):
        super().__init__(folder)
        text = (SHIPPED / "nginx.conf").read_text()
        text = re.sub(r"10\.0\.0\.1(\d):7600",
                      lambda match: f"{address_of(int(match[1]))}:{fleet.port}", text)
        text = text.replace("listen 127.0.0.1:7600", f"listen {self.address}")
        self._file = self.folder / "nginx.conf"
        self._file.write_text(f"pid {self.folder}/pid;\n{text}")
        self._command = [NGINX, "-p", self.folder, "-e", "stderr", "-c", self._file, "-g"]

    def check(self):
        done = subprocess.run([*self._command, "daemon off;", "-t", "-q"], capture_output=True,
                              text=True, timeout=30, check=False)
        return done.stderr

    def start(self):
        self.process = running([*self._command, "daemon off;"], self.log)
        eventually(self.answers)
        return self
