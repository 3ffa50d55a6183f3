"""The program docmem, run against one daemon."""

import json
import os
import subprocess

from daemon import BINARIES

DONE, FAILED, USAGE, STOPPED = 0, 1, 2, 130


class Cli:
    """Runs docmem against one daemon."""

    def __init__(self, daemon, folder):
        self.daemon, self.folder = daemon, folder
        self.environment = {**os.environ, "DOCMEM_ADDRESS": daemon.address}

    def run(self, *arguments, code=DONE, stdin=b"", **environment):
        done = subprocess.run(
            [BINARIES / "docmem", *map(str, arguments)], input=stdin, capture_output=True,
            timeout=90, check=False, env={**self.environment, **environment},
        )
        assert done.returncode == code, (arguments, done.returncode, done.stderr.decode())
        return done

    def begin(self, *arguments):
        return subprocess.Popen([BINARIES / "docmem", *map(str, arguments)], env=self.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def text(self, *arguments, **more):
        return self.run(*arguments, **more).stdout.decode()

    def json(self, *arguments, **more):
        done = self.run(*arguments, "--output", "json", **more)
        assert done.stdout.count(b"\n") == 1 and not done.stderr
        return json.loads(done.stdout)

    def error(self, *arguments, code=FAILED, **more):
        done = self.run(*arguments, "--output", "json", code=code, **more)
        assert not done.stdout
        return json.loads(done.stderr)["error"]

    def file(self, name, content):
        path = self.folder / name
        path.write_text(content)
        return path
