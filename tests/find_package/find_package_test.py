"""The client library as outside projects see it: installed, found, linked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

from daemon import Daemon  # noqa: E402
from texts import document  # noqa: E402


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Where the library is installed."""
    folder = tmp_path_factory.mktemp("prefix")
    run(os.environ["DOCMEM_CMAKE"], "--install", os.environ["DOCMEM_BUILD"],
        "--component", "client", "--prefix", str(folder))
    return folder


def built(project, prefix, build):
    """The folder with the project's programs."""
    cmake = os.environ["DOCMEM_CMAKE"]
    configure = [cmake, "-S", str(project), "-B", str(build), "-G", "Ninja",
                 f"-DCMAKE_PREFIX_PATH={prefix}",
                 f"-DCMAKE_CXX_COMPILER={os.environ['DOCMEM_CXX']}"]
    if sanitizers := os.environ["DOCMEM_SANITIZE"]:
        configure.append(f"-DCMAKE_CXX_FLAGS=-fsanitize={sanitizers}")
    run(*configure)
    run(cmake, "--build", str(build))
    return build


def test_an_outside_project_links_the_installed_client(prefix, tmp_path):
    outside = built(Path(__file__).parent / "project", prefix, tmp_path) / "outside"
    assert run(str(outside)).strip() == "UNAVAILABLE"


def test_the_example_prints_what_the_daemon_answers(prefix, tmp_path):
    ask = built(ROOT / "examples/cpp", prefix, tmp_path / "build") / "ask"
    daemon = Daemon(tmp_path).start()
    try:
        client = daemon.client()
        client.ingest(document("d"), "d", ratio_ppm=[0])
        answer = client.ask("d", "Who?", max_tokens=64).text
        assert run(str(ask), daemon.address, "d", "Who?") == answer + "\n"
        refused = subprocess.run(
            [ask, daemon.address, "absent", "Who?"], capture_output=True, text=True, check=False)
        assert refused.returncode == 1
        assert refused.stderr == (
            "ask: there is no document 'absent' in collection 'default' [DOCUMENT_NOT_FOUND]\n")
    finally:
        daemon.end()


def test_nothing_of_the_insides_is_installed(prefix):
    headers = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*.h")}
    assert "include/docmem/client/query_client.h" in headers
    assert "include/docmem/docmem/v1/query.pb.h" in headers
    assert not [header for header in headers if "internal" in header or "/cli/" in header]
