"""Documents behind a real docmemd on loopback, and the load generator that asks them."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from random_adapter import write_adapter

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/bench/served"
sys.path += [str(ROOT / "scripts"), str(ROOT / "tests/integration")]

from demo_daemon import Daemon  # noqa: E402  (behind the path)
from texts import document  # noqa: E402

RATIO = "0.9"
RANK = 16
QUESTION = "What does the report say about the harbour wall, and who repairs it?"


def add_options(parser):
    """What is measured, and with what."""
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--model", type=Path, default=ROOT / "build/models/smollm2-135m-instruct")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release", help="build folder")


class Served:
    """Documents d0000, d0001, … of one size in a data folder of their own, each with a cache at
    ratio 0.9 and, unless told otherwise, an adapter of rank 16 on all modules of its own."""

    def __init__(self, options, name, count, sentences, adapters=True):
        self.options = options
        self.folder = FOLDER / name
        self.texts = [document(number, sentences) for number in range(count)]
        self.tokens = []
        self.bytes = 0  # of all caches and adapters when they are loaded
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        with self.daemon() as daemon:
            for number in range(count):
                self._ingest(daemon, number)
                if adapters:
                    self._adapt(daemon, number)

    @contextlib.contextmanager
    def daemon(self, *further, budget=None):
        """A started one that ends with the context. No budget: room for everything. `further`:
        options of docmemd."""
        options = self.options
        with Daemon(options.build / "bin", options.model, self.folder,
                    "--threads", str(options.threads), "--dtype", options.dtype,
                    "--device-budget", str(budget or max(2 * self.bytes, 1 << 30)),
                    *further) as daemon:
            daemon.start()
            yield daemon
            daemon.stop()

    def delete(self):
        shutil.rmtree(self.folder)

    def adapter(self, number):
        return self.folder / f"adapters/{number:04}"

    def prefetch(self, daemon):
        """Loads everything, in the order of the documents; the last ones stay if not all fit."""
        for number in range(len(self.texts)):
            daemon.call("prefetch", f"d{number:04}", "--adapter", "--wait")

    def load(self, daemon, **options):
        """What the load generator reports; `options` are its own."""
        command = [self.options.build / "bench/load_generator", "--address", daemon.address, "--json",
                   "--question", QUESTION]
        for name, value in options.items():
            flag = "--" + name.replace("_", "-")
            command += [flag] if value is True else [flag, str(value)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"load_generator: {done.stderr}")
        return json.loads(done.stdout)

    def _ingest(self, daemon, number):
        path = self.folder / "text"
        path.write_text(self.texts[number])
        made = daemon.call("ingest", str(path), "--id", f"d{number:04}", "--ratio", RATIO)["document"]
        self.tokens.append(made["documentTokens"])
        self.bytes += int(made["caches"][0]["deviceBytes"])

    def _adapt(self, daemon, number):
        folder = self.adapter(number)
        write_adapter(folder, self.options.model, RANK, seed=number)
        made = daemon.call("adapter", "upload", f"d{number:04}", str(folder))
        self.bytes += int(made["deviceBytes"])


def failed(report):
    """How many questions got no answer, or another one than alone."""
    return sum(report["errors"].values()) + report["different_answers"]
