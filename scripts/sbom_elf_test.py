"""The closure is the loader's own, and no bytes make the reader fall."""

import io
import os
import random
import re
import shutil
import subprocess
import sys

import pytest
import sbom_elf
from sbom_root import Root, SbomError
from sbom_testing import AARCH64, SYSTEM_LIBRARIES, elf, image, write


def loaded(folder, files, program="bin/p"):
    return sbom_elf.closure(Root(write(folder, files)), program)


def test_what_a_library_says_about_itself_is_read():
    library = sbom_elf.read(io.BytesIO(elf(["liba.so", "libb.so.1"], "libme.so", "/r", "/x:/y")))
    assert library == sbom_elf.Library(62, ["liba.so", "libb.so.1"], "libme.so", ["/r"],
                                       ["/x", "/y"])


@pytest.mark.skipif(not shutil.which("ldd"), reason="needs ldd")
@pytest.mark.parametrize("program", ["sh", "openssl", "cmake", sys.executable])
def test_this_machines_loader_agrees(program):
    path = shutil.which(program)
    if not path:
        pytest.skip(f"needs {program}")
    path = os.path.realpath(path)
    told = subprocess.run(["ldd", path], capture_output=True, text=True, check=False,
                          env={"PATH": os.environ["PATH"]}).stdout
    expected = {os.path.realpath(place) for place in re.findall(r" => (/\S+) \(", told)}
    places, missing = sbom_elf.closure(Root("/"), path)
    assert expected and missing == []
    assert {f"/{place}" for place in places if "/ld-linux" not in place} == expected


def test_libraries_of_libraries_are_found(tmp_path):
    places, missing = sbom_elf.closure(Root(image(tmp_path)), "usr/local/bin/docmemd")
    beside = ["libc10.so", "libcudart.so.13", "libcupti.so.13", "libgomp.so.1", "libtorch_cpu.so"]
    assert places == [f"usr/lib/x86_64-linux-gnu/{name}" for name in [
        "libc.so.6", "libgrpc++.so.1.51.1", "libz.so.1"]] + [
        f"usr/local/lib/docmem/{name}" for name in beside]
    assert missing == []


def test_a_missing_library_is_named(tmp_path):
    (image(tmp_path) / SYSTEM_LIBRARIES / "libz.so.1").unlink()
    assert sbom_elf.closure(Root(tmp_path), "usr/local/bin/docmem")[1] == ["libz.so.1"]


def test_a_run_path_comes_before_the_system(tmp_path):
    places, _ = loaded(tmp_path, {
        "bin/p": elf(["liba.so"], runpath="relative::${ORIGIN}/../own:$PLATFORM/x"),
        "own/liba.so": elf(), "usr/lib/liba.so": elf(), "bin/relative/liba.so": elf()})
    assert places == ["own/liba.so"]


def test_an_rpath_is_inherited_and_a_runpath_is_not(tmp_path):
    files = {"own/liba.so": elf(["libb.so"]), "own/libb.so": elf()}
    old = files | {"bin/p": elf(["liba.so"], rpath="$ORIGIN/../own")}
    new = files | {"bin/p": elf(["liba.so"], runpath="$ORIGIN/../own")}
    assert loaded(tmp_path / "old", old) == (["own/liba.so", "own/libb.so"], [])
    assert loaded(tmp_path / "new", new) == (["own/liba.so"], ["libb.so"])


def test_a_runpath_hides_the_rpath_beside_it(tmp_path):
    places, _ = loaded(tmp_path, {"bin/p": elf(["liba.so"], rpath="/old", runpath="/new"),
                                  "old/liba.so": elf(), "new/liba.so": elf()})
    assert places == ["new/liba.so"]


def test_a_library_that_is_loaded_answers_to_its_soname(tmp_path):
    places, missing = loaded(tmp_path, {
        "bin/p": elf(["liba.so", "libb.so"], runpath="/own"),
        "own/liba.so": elf(soname="libb.so"), "own/libb.so": elf()})
    assert (places, missing) == (["own/liba.so"], [])


def test_what_is_for_another_machine_or_no_library_is_passed_over(tmp_path):
    places, _ = loaded(tmp_path, {
        "bin/p": elf(["liba.so"]), "etc/ld.so.conf": "/foreign\n/script\n\n# x\n/own\n",
        "foreign/liba.so": elf(machine=AARCH64), "script/liba.so": "INPUT(liba.so.1)\n",
        "own/liba.so": elf()})
    assert places == ["own/liba.so"]


def test_a_program_for_another_machine_finds_its_own_libraries(tmp_path):
    places, _ = loaded(tmp_path, {
        "bin/p": elf(["liba.so"], machine=AARCH64), "usr/lib/x86_64-linux-gnu/liba.so": elf(),
        "usr/lib/aarch64-linux-gnu/liba.so": elf(machine=AARCH64)})
    assert places == ["usr/lib/aarch64-linux-gnu/liba.so"]


def test_rings_end(tmp_path):
    places, _ = loaded(tmp_path, {
        "bin/p": elf(["liba.so"]), "lib/liba.so": elf(["libb.so"]), "lib/libb.so": elf(["liba.so"]),
        "etc/ld.so.conf": "include /etc/*.conf\n"})
    assert places == ["lib/liba.so", "lib/libb.so"]


def test_a_library_outside_of_the_root_is_missing(tmp_path):
    write(tmp_path, {"liba.so": elf()})
    root = write(tmp_path / "root", {"bin/p": elf(["liba.so", "../liba.so"], runpath="/../.."),
                                     "lib/liba.so": f"->{tmp_path}/liba.so"})
    assert sbom_elf.closure(Root(root), "bin/p") == ([], ["../liba.so", "liba.so"])


@pytest.mark.parametrize("content", ["", "#!/bin/sh\n", "\x7fELF"])
def test_what_is_no_program_is_refused(tmp_path, content):
    write(tmp_path, {"bin/p": content})
    for name in ["bin/p", "bin/absent", "bin"]:
        with pytest.raises(SbomError, match=f"/{name} is no program"):
            sbom_elf.closure(Root(tmp_path), name)


def test_damage_is_told_or_read(tmp_path):
    whole, generator = elf(["liba.so", "libb.so"], "libme.so", "/r", "/x"), random.Random(1)
    for length in range(len(whole)):
        with pytest.raises(ValueError):
            sbom_elf.read(io.BytesIO(whole[:length]))
    told = 0
    for _ in range(20_000):
        damaged = bytearray(whole)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(whole))] = generator.choice([0, 1, 127, 128, 255])
        try:
            sbom_elf.read(io.BytesIO(damaged))
        except ValueError:
            told += 1
    assert 5_000 < told < 20_000
