"""The bill of materials of a made-up image: complete, valid, the same each time."""

import copy
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import make_sbom
import pytest
from sbom_root import Root, SbomError
from sbom_rules import complaints
from sbom_testing import STATUS, docmem_files, elf, image, write

CREATED = "2026-12-01T00:00:00Z"
HEADERS = "".join(
    f"\nPackage: {name}\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n"
    for name in make_sbom.COMPILED_IN)


def bill(root, **options):
    options = {name: Root(value) if name == "build_root" else value
               for name, value in options.items()}
    return make_sbom.make(Root(root), "0.1.0", options.pop("created", CREATED), **options)


def package(document, name):
    [one] = [one for one in document["packages"] if one["name"] == name]
    return one


def purl(document, name):
    return package(document, name)["externalRefs"][0]["referenceLocator"]


def related(document, name, kind):
    """Names of what the package called `name` contains or depends on."""
    names = {one["SPDXID"]: one.get("name") or one["fileName"]
             for one in document["packages"] + document["files"]}
    origin = package(document, name)["SPDXID"]
    return [names[one["relatedSpdxElement"]] for one in document["relationships"]
            if (one["spdxElementId"], one["relationshipType"]) == (origin, kind)]


@pytest.fixture
def root(tmp_path):
    return image(tmp_path / "root")


def test_the_image_contains_the_system_and_docmem(root):
    document = bill(root)
    assert complaints(document) == []
    assert related(document, "docmem-image", "CONTAINS") == ["debian", "docmem"]
    assert related(document, "debian", "CONTAINS") == ["libc6", "libgrpc++1.51", "tar", "zlib1g"]
    assert related(document, "docmem", "CONTAINS") == [
        "./usr/local/bin/docmem", "./usr/local/bin/docmemd", "googleapis-common-protos",
        "nvidia-cuda-cupti", "nvidia-cuda-runtime", "torch"]
    assert related(document, "torch", "CONTAINS") == [
        f"./usr/local/lib/docmem/{name}" for name in ["libc10.so", "libgomp.so.1",
                                                      "libtorch_cpu.so"]]


def test_it_depends_on_what_it_loads_and_on_nothing_else(root):
    assert related(bill(root), "docmem", "DEPENDS_ON") == [
        "libc6", "libgrpc++1.51", "zlib1g", "nvidia-cuda-cupti", "nvidia-cuda-runtime", "torch"]


def test_packages_have_urls_by_which_scanners_know_them(root):
    document = bill(root)
    assert purl(document, "libgrpc++1.51") == (
        "pkg:deb/debian/libgrpc%2B%2B1.51@1.51.1-3%2Bb1"
        "?arch=amd64&distro=debian-12&upstream=grpc%401.51.1-3")
    assert purl(document, "zlib1g") == (
        "pkg:deb/debian/zlib1g@1:1.2.13.dfsg-1?arch=amd64&distro=debian-12&upstream=zlib")
    assert purl(document, "tar") == (
        "pkg:deb/debian/tar@1.34%2Bdfsg-1.2?arch=amd64&distro=debian-12")
    assert purl(document, "torch") == "pkg:pypi/torch@2.11.0"
    assert package(document, "debian")["versionInfo"] == "12"
    assert package(document, "libgrpc++1.51")["sourceInfo"] == "built package from: grpc 1.51.1-3"


def test_packages_say_who_supplies_them_and_what_is_known_of_licences(root):
    document = bill(root)
    assert package(document, "zlib1g")["licenseDeclared"] == "Zlib"
    assert package(document, "zlib1g")["supplier"] == "Person: Mark Brown (broonie@debian.org)"
    assert package(document, "libc6")["licenseDeclared"] == "NOASSERTION"
    assert package(document, "libc6")["supplier"] == (
        "Organization: GNU Libc Maintainers (debian-glibc@lists.debian.org)")
    assert package(document, "libgrpc++1.51")["homepage"] == "https://www.grpc.io/"
    assert "homepage" not in package(document, "libc6")


def test_files_have_their_digests(root):
    for file in bill(root)["files"]:
        content = (root / file["fileName"]).read_bytes()
        assert {one["algorithm"]: one["checksumValue"] for one in file["checksums"]} == {
            "SHA1": hashlib.sha1(content).hexdigest(),
            "SHA256": hashlib.sha256(content).hexdigest()}


def test_only_what_is_described_changes_the_bytes(root, tmp_path):
    turned = "\n\n".join(reversed(STATUS.strip().split("\n\n")))
    other = write(image(tmp_path / "other"), {"var/lib/dpkg/status": turned, "etc/motd": "hello"})
    assert json.dumps(bill(root)) == json.dumps(bill(other))
    changes = [bill(root, created="2026-12-02T00:00:00Z")]
    (other / "usr/local/bin/docmem").write_bytes(elf(["libc.so.6"]))
    changes.append(bill(other))
    names = {one["documentNamespace"] for one in [bill(root), *changes]}
    assert len(names) == 3


def test_a_debian_package_has_what_it_bundles(tmp_path):
    root = write(tmp_path, docmem_files("usr"))
    document = bill(root, is_package=True)
    assert complaints(document) == []
    assert [one["name"] for one in document["packages"]] == [
        "docmem", "googleapis-common-protos", "nvidia-cuda-cupti", "nvidia-cuda-runtime", "torch"]
    assert package(document, "docmem")["comment"] == (
        "Needs these libraries of the system: libc.so.6, libgrpc++.so.1.51")


def test_headers_of_the_build_are_part_of_docmem(root, tmp_path):
    build = write(tmp_path / "build", {"var/lib/dpkg/status": STATUS + HEADERS})
    assert make_sbom.COMPILED_IN[0] in related(bill(root, build_root=build), "docmem", "CONTAINS")
    with pytest.raises(SbomError, match="libcli11-dev isn't installed where DocMem was built"):
        bill(root, build_root=root)


def test_headers_may_be_of_the_root_itself(root):
    write(root, {"var/lib/dpkg/status": STATUS + HEADERS})
    assert complaints(bill(root, build_root=root)) == []


def test_docmem_installed_from_its_package_is_there_once(tmp_path):
    status = f"{STATUS}\nPackage: docmem\nStatus: install ok installed\nVersion: 0.1.0\n"
    root = write(image(tmp_path), docmem_files("usr") | {"var/lib/dpkg/status": status})
    assert purl(bill(root), "docmem") == "pkg:generic/docmem@0.1.0"


def test_odd_packages_are_told_and_have_ids_of_their_own(root):
    odd = ["lib++", "lib--", "a/../../b", "x y", "\u00fc\u2028", "%41?a=b#c", "<b>", "a-b"]
    write(root, {"var/lib/dpkg/status": STATUS + "".join(
        f"\nPackage: {name}\nVersion: 1 \u00e4&\"\nArchitecture: {architecture}\n"
        f"Source: s p a c e\nMaintainer: {name} <<x>> (y) <a b>\nHomepage: https://x y/{name}\n"
        for name in odd for architecture in ["amd64", "b-c", "?", "\u00fc"])})
    document = bill(root)
    assert complaints(document) == []
    assert sum(one["name"] in odd for one in document["packages"]) == 4 * len(odd)
    assert json.loads(json.dumps(document).encode("ascii")) == document


def test_links_out_of_the_root_bring_nothing_in(root, tmp_path):
    write(tmp_path, {"libsecret.so": elf()})
    write(root, {"usr/local/lib/docmem/libsecret.so": f"->{tmp_path}/libsecret.so",
                 "usr/local/lib/docmem/libagain.so": "->libc10.so"})
    assert "secret" not in json.dumps(bill(root))
    (root / "usr/local/bin/docmemd").unlink()
    write(root, {"usr/local/bin/docmemd": f"->{tmp_path}/libsecret.so"})
    with pytest.raises(SbomError, match="neither /usr/local/bin nor /usr/bin"):
        bill(root)


@pytest.mark.parametrize(("change", "message"), [
    ({"usr/local/lib/docmem/libnew.so.1": elf()}, "/libnew.so.1 is of no wheel"),
    ({"usr/local/bin/docmemd": elf()}, "/usr/local/bin/docmemd has no run path"),
    ({"usr/local/bin/docmemd": b"#!"}, "/usr/local/bin/docmemd has no run path"),
    ({"usr/local/bin/docmem": elf(["libabsent.so"])}, "libraries are missing: libabsent.so"),
    ({"usr/local/bin/docmem": elf(["libx.so"]), "usr/local/lib/libx.so": elf(),
      "etc/ld.so.conf": "/usr/local/lib\n"}, "no package brings /usr/local/lib/libx.so"),
    ({"usr/local/bin/docmem": None}, "neither /usr/local/bin nor /usr/bin has docmemd and docmem"),
    ({"usr/local/lib/docmem/libcupti.so.13": None}, "no library of nvidia-cuda-cupti"),
    ({"var/lib/dpkg/status": None}, "no /var/lib/dpkg/status"),
])
def test_what_would_be_left_out_is_an_error(root, change, message):
    for name, content in change.items():
        (root / name).unlink(missing_ok=True)
        write(root, {name: content} if content is not None else {})
    with pytest.raises(SbomError, match=message):
        bill(root)


@pytest.mark.parametrize(("maintainer", "supplier"), [
    ("Debian QA Group <qa@debian.org>", "Organization: Debian QA Group (qa@debian.org)"),
    ("J\u00f6rg (jo) O'Neil <j@x>,", "Person: J\u00f6rg jo O'Neil (j@x)"),
    ("Nobody", "Person: Nobody"),
    ("", "NOASSERTION"), ("<a@b>", "NOASSERTION"), ("A <b <c>", "NOASSERTION"),
    ("( )", "NOASSERTION"),
])
def test_maintainers_become_suppliers(maintainer, supplier):
    assert make_sbom.agent(maintainer) == supplier


def run(*arguments, **variables):
    return subprocess.run(
        [sys.executable, "-B", Path(make_sbom.__file__), "--version", "0.1.0", *arguments],
        capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
        | variables)


def test_the_time_comes_from_the_option_or_the_environment(root, tmp_path):
    def created(*arguments, **variables):
        return json.loads(run("--root", root, *arguments, **variables).stdout)[
            "creationInfo"]["created"]

    assert created("--created", CREATED, SOURCE_DATE_EPOCH="1") == CREATED
    assert created(SOURCE_DATE_EPOCH="1764600000") == "2025-12-01T14:40:00Z"
    assert created(SOURCE_DATE_EPOCH="") > CREATED[:4]
    output = tmp_path / "out.json"
    assert run("--root", root, "--output", output, SOURCE_DATE_EPOCH="0").returncode == 0
    assert json.loads(output.read_text())["creationInfo"]["created"] == "1970-01-01T00:00:00Z"
    assert output.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(("arguments", "variables", "message"), [
    (["--root", "absent"], {}, "make_sbom.py: absent is no folder\n"),
    (["--root", "/", "--created", "yesterday"], {}, "make_sbom.py: no time: yesterday\n"),
    (["--root", "/"], {"SOURCE_DATE_EPOCH": "9" * 30}, f"make_sbom.py: no time: {'9' * 30}\n"),
    (["--root", "/", "--version", "1 2"], {}, "no version: '1 2'"),
])
def test_mistakes_are_told_in_a_line(arguments, variables, message):
    done = run(*arguments, **variables)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def at(path, value):
    """A change of one value of a document; None takes it away."""
    def change(document):
        *folders, name = path
        for folder in folders:
            document = document[folder]
        if value is None:
            del document[name]
        else:
            document[name] = value
    return change


def add(path, value):
    def change(document):
        document[path].append(value(document) if callable(value) else value)
    return change


PLANTED = [
    (at(["spdxVersion"], "SPDX-2.2"), "spdxVersion is SPDX-2.2"),
    (at(["dataLicense"], "MIT"), "dataLicense is MIT"),
    (at(["name"], ""), "the document has an empty name"),
    (at(["files"], None), "the document lacks files"),
    (at(["license"], "x"), "the document has an unknown field license"),
    (at(["documentNamespace"], "docmem#1"), "documentNamespace is no absolute URI"),
    (at(["creationInfo", "created"], "2026-12-01 00:00"), "created is no time in UTC"),
    (at(["creationInfo", "created"], "2026-13-01T00:00:00Z"), "created is no time in UTC"),
    (at(["creationInfo", "creators"], []), "creationInfo has an empty creators"),
    (at(["creationInfo", "creators"], ["me"]), "no tool, person or organisation: me"),
    (at(["packages", 0, "downloadLocation"], None), "lacks downloadLocation"),
    (at(["packages", 0, "downloadLocation"], "somewhere"), "that is no URI: somewhere"),
    (at(["packages", 0, "SPDXID"], "SPDXRef-a_b"), "no SPDXID: SPDXRef-a_b"),
    (at(["packages", 0, "SPDXID"], "SPDXRef-docmem"), "SPDXRef-docmem is there twice"),
    (at(["packages", 0, "supplier"], "Debian"), "no supplier as SPDX writes it"),
    (at(["packages", 0, "homepage"], "a page"), "a homepage that is no URI"),
    (at(["packages", 0, "primaryPackagePurpose"], "FUN"), "an unknown purpose"),
    (at(["packages", 0, "licenseDeclared"], "MIT OR"), "no licence expression: MIT OR"),
    (at(["packages", 0, "licenseConcluded"], "(MIT"), "no licence expression: (MIT"),
    (at(["packages", 0, "filesAnalyzed"], True), "another packageVerificationCode"),
    (at(["packages", 0, "externalRefs", 0, "referenceType"], "cpe"), "of an unknown kind"),
    (at(["packages", 0, "externalRefs", 0, "referenceLocator"], "pkg:deb/a b"), "no package URL"),
    (at(["packages", 0, "externalRefs", 0, "referenceLocator"], None), "lacks referenceLocator"),
    (at(["files", 0, "fileName"], "/bin/docmem"), "doesn't start with ./"),
    (at(["files", 0, "checksums", 0, "checksumValue"], "ab"), "has no SHA1"),
    (at(["files", 0, "checksums", 0, "checksumValue"], "0" * 40), "packageVerificationCode than"),
    (at(["files", 0, "checksums", 1, "algorithm"], "MD5"), "an unknown checksum MD5"),
    (at(["relationships", 0, "relationshipType"], "LIKES"), "an unknown relationship"),
    (at(["relationships", 0], None), "the document describes nothing"),
    (add("packages", lambda document: document["packages"][0] | {"SPDXID": "SPDXRef-alone"}),
     "nothing refers to SPDXRef-alone"),
    (at(["relationships", 1, "relatedSpdxElement"], "SPDXRef-x"), "something unknown, SPDXRef-x"),
    (at(["relationships", 0, "spdxElementId"], "SPDXRef-docmem"), "nothing else does"),
    (add("relationships", lambda document: document["relationships"][0]), "is there twice"),
    (add("relationships", lambda document: {
        "spdxElementId": document["packages"][0]["SPDXID"], "relationshipType": "CONTAINS",
        "relatedSpdxElement": document["files"][0]["SPDXID"]}), "says that they weren't analysed"),
]


@pytest.mark.parametrize(("change", "message"), PLANTED, ids=[message for _, message in PLANTED])
def test_a_broken_rule_is_found(tmp_path, change, message):
    document = copy.deepcopy(bill(image(tmp_path)))
    change(document)
    assert [one for one in complaints(document) if message in one]


def test_a_document_that_breaks_a_rule_isnt_written(root, monkeypatch):
    monkeypatch.setattr(make_sbom, "UNKNOWN", "UNKNOWN TO ME")
    with pytest.raises(SbomError, match="the document breaks rules of SPDX: "):
        bill(root)
