"""Runs a command beside a PostgreSQL server of its own, on a Unix socket and a loopback port.

usage: with_postgres.py COMMAND [ARGUMENTS...]

The command finds a connection string in DOCMEM_TEST_POSTGRES. Exit code: the command's; 77 where
PostgreSQL isn't installed.
"""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
SETTINGS = {
    "fsync": "off",  # nobody cuts the power here
    "max_connections": "50",
    "shared_buffers": "16MB",
    "dynamic_shared_memory_type": "mmap",
}


def programs():
    """The folder with initdb and pg_ctl; Debian keeps them out of the path."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A cluster in a folder; owned by another user where we are root, as PostgreSQL demands."""

    def __init__(self, folder, binaries):
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self._binaries = binaries
        self._as_user = []
        if os.geteuid() == 0:
            owner = pwd.getpwnam("nobody")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            # subprocess's own `user` forks, which a process with gRPC's threads doesn't survive.
            self._as_user = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}",
                             "--clear-groups"]

    def _run(self, program, *arguments):
        subprocess.run([*self._as_user, self._binaries / program, *arguments], check=True,
                       cwd=self.folder, stdout=subprocess.DEVNULL, timeout=120)

    def __enter__(self):
        self._run("initdb", "--pgdata", self.data, "--username", "docmem", "--auth", "trust",
                  "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync")
        self.start()
        return self

    def __exit__(self, *_):
        if (self.data / "postmaster.pid").exists():
            self.stop()

    def start(self):
        options = [f"-c {name}={value}" for name, value in SETTINGS.items()]
        options += [f"-c port={self.port}", f"-c unix_socket_directories={self.folder}",
                    "-c listen_addresses=127.0.0.1"]
        self._run("pg_ctl", "--pgdata", self.data, "--wait", "--log", self.folder / "log",
                  "--options", " ".join(options), "start")

    def stop(self):
        """At once, as a crash does: the next start recovers."""
        self._run("pg_ctl", "--pgdata", self.data, "--wait", "--mode", "immediate", "stop")

    @property
    def address(self):
        return f"host=127.0.0.1 port={self.port} user=docmem dbname=postgres"


def main():
    binaries = programs()
    if binaries is None:
        print("skipped: PostgreSQL isn't installed (apt-get install postgresql)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="docmem-postgres-") as folder:
        with Server(Path(folder), binaries) as server:
            environment = {**os.environ, "DOCMEM_TEST_POSTGRES": server.address}
            return subprocess.run(sys.argv[1:], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
