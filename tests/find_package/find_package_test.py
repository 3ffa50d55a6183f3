"""The client library as an outside project sees it: installed, found, linked."""

import os
import subprocess
from pathlib import Path

PROJECT = Path(__file__).parent / "project"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_outside_project_links_the_installed_client(tmp_path):
    cmake = os.environ["DOCMEM_CMAKE"]
    prefix, build = tmp_path / "prefix", tmp_path / "build"
    run(cmake, "--install", os.environ["DOCMEM_BUILD"], "--component", "client",
        "--prefix", str(prefix))
    configure = [cmake, "-S", str(PROJECT), "-B", str(build), "-G", "Ninja",
                 f"-DCMAKE_PREFIX_PATH={prefix}",
                 f"-DCMAKE_CXX_COMPILER={os.environ['DOCMEM_CXX']}"]
    if sanitizers := os.environ["DOCMEM_SANITIZE"]:
        configure.append(f"-DCMAKE_CXX_FLAGS=-fsanitize={sanitizers}")
    run(*configure)
    run(cmake, "--build", str(build))
    assert run(str(build / "outside")).strip() == "UNAVAILABLE"


def test_nothing_of_the_insides_is_installed(tmp_path):
    run(os.environ["DOCMEM_CMAKE"], "--install", os.environ["DOCMEM_BUILD"],
        "--component", "client", "--prefix", str(tmp_path))
    headers = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.h")}
    assert "include/docmem/client/query_client.h" in headers
    assert "include/docmem/docmem/v1/query.pb.h" in headers
    assert not [header for header in headers if "internal" in header or "/cli/" in header]
