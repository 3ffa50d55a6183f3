"""The load generator of bench/ against a daemon: nothing fails, and load changes no answer."""

import json
import subprocess

import pytest

from daemon import BINARIES
from folders import adapter
from texts import document

GENERATOR = BINARIES.parent / "bench" / "load_generator"


@pytest.fixture
def loaded(make_daemon, patient):
    daemon = make_daemon("--max-sequences", "4", model=patient).start()
    client = daemon.client()
    for n in range(4):
        client.ingest(document(n), f"d{n}")
    client.upload("d1", adapter())
    return daemon


def load(daemon, *options):
    command = [GENERATOR, "--address", daemon.address, "--json", "--check", "--max-tokens", "12"]
    done = subprocess.run([*map(str, command), *map(str, options)], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("options", [
    ("--clients", 8, "--seconds", 3, "--zipf", 1),
    ("--clients", 16, "--seconds", 3, "--rate", 20),
    ("--clients", 8, "--seconds", 3, "--batch"),
], ids=["closed", "open", "batch"])
def test_under_load_every_answer_is_the_one_given_alone(loaded, options):
    report = load(loaded, *options)
    assert report["questions"] > 8 and report["tokens_per_second"] > 0
    assert report["errors"] == {} and report["different_answers"] == 0
    assert report["first_token_ms"]["p50"] <= report["first_token_ms"]["p99"]
    client = loaded.client()
    queue = client.status().queue
    assert (queue.running, queue.waiting) == (0, 0)


def test_refusals_are_counted_by_their_code(make_daemon, patient):
    daemon = make_daemon("--max-sequences", "1", "--max-queue", "1", model=patient).start()
    daemon.client().ingest(document("full"), "d")
    report = load(daemon, "--clients", 8, "--seconds", 2)
    assert set(report["errors"]) == {"RESOURCE_EXHAUSTED"}
    assert report["different_answers"] == 0
