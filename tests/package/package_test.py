"""The Debian package holds all that the service needs, and says what it depends on."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("DOCMEM_BUILD", "build/release")).resolve()
CPACK = os.environ.get("DOCMEM_CPACK", "cpack")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    for program, debian in [("dpkg-shlibdeps", "dpkg-dev"), ("file", "file")]:
        if not shutil.which(program):
            pytest.skip(f"cpack needs {program}: apt-get install {debian}")
    folder = tmp_path_factory.mktemp("package")
    run(CPACK, "--config", str(BUILD / "CPackConfig.cmake"), "-B", str(folder))
    [package] = folder.glob("*.deb")
    return package


@pytest.fixture(scope="module")
def root(package, tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    run("dpkg-deb", "--extract", str(package), str(folder))
    return folder


def test_the_programs_run_on_the_libraries_beside_them_and_on_debians(root):
    for program in ["docmemd", "docmem"]:
        path = str(root / "usr/bin" / program)
        assert run(path, "--version").startswith(program)
        assert "[$ORIGIN/../lib/docmem]" in run("readelf", "--dynamic", path)
    for path in re.findall(r" => (\S+)", run("ldd", str(root / "usr/bin/docmemd"))):
        assert path.startswith((f"{root}/usr/", "/lib/", "/usr/lib/")), "neither ours nor Debian's"


def test_the_unit_starts_what_is_there(root):
    unit = (root / "usr/lib/systemd/system/docmemd.service").read_text()
    [program, settings] = re.findall(r"^ExecStart=(\S+) --config (\S+)$", unit, re.MULTILINE)[0]
    [page] = re.findall(r"^Documentation=file:(\S+)$", unit, re.MULTILINE)
    for path in [program, settings, page]:
        assert (root / path.lstrip("/")).is_file()


def test_settings_survive_an_upgrade(package, root):
    [settings] = run("dpkg-deb", "--info", str(package), "conffiles").split()
    assert (root / settings.lstrip("/")).is_file()


def test_what_it_needs_is_named(package):
    depends = run("dpkg-deb", "--field", str(package), "Depends")
    for library in ["libc6", "libgrpc++1.51", "libsqlite3-0", "libprometheus-cpp-pull1.0"]:
        assert library in depends
    assert "torch" not in depends


def test_its_bill_of_materials_has_the_programs_and_the_bundled_libraries(root):
    bill = json.loads((root / "usr/share/doc/docmem/sbom.spdx.json").read_text())
    told = {file["fileName"]: file["checksums"][1]["checksumValue"] for file in bill["files"]}
    there = [root / "usr/bin/docmemd", root / "usr/bin/docmem",
             *(root / "usr/lib/docmem").iterdir()]
    assert told == {f"./{path.relative_to(root)}": hashlib.sha256(path.read_bytes()).hexdigest()
                    for path in there}
    assert {"docmem", "torch", "nlohmann-json3-dev"} <= {one["name"] for one in bill["packages"]}


def test_bundled_libraries_bring_their_licences(root):
    for wheel in ["torch", "nvidia_cuda_runtime", "nvidia_cuda_cupti"]:
        assert list((root / "usr/share/doc/docmem" / wheel).iterdir())
