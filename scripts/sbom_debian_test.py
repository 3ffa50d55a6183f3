"""dpkg's lists and Debian's copyright files, also those that nobody would write."""

import pytest
import sbom_debian
from sbom_debian import DebianPackage, paragraphs
from sbom_root import Root, SbomError
from sbom_testing import MACHINE_READABLE, STATUS, image, write


def named(name, architecture="amd64"):
    return DebianPackage(name, "1", architecture, name, "1", "", "")


def packages(tmp_path, status):
    write(tmp_path, {sbom_debian.STATUS: status})
    return sbom_debian.installed(Root(tmp_path))


def test_what_has_files_is_listed_by_name(tmp_path):
    found = packages(tmp_path, STATUS)
    assert [one.name for one in found] == ["libc6", "libgrpc++1.51", "tar", "zlib1g"]
    grpc = found[1]
    assert (grpc.version, grpc.source, grpc.source_version) == ("1.51.1-3+b1", "grpc", "1.51.1-3")
    assert (found[2].source, found[2].source_version) == ("tar", "1.34+dfsg-1.2")
    assert (found[3].source, found[3].source_version) == ("zlib", "1:1.2.13.dfsg-1")


def test_odd_fields_are_no_harm(tmp_path):
    [one] = packages(tmp_path, (
        "\n \t\nPackage:odd\nVERSION:   2 \nX-Odd{}-Field: :: x\nEmpty:\nStatus:unpacked\n"
        "Source: a b c (d)\nHomepage:\n\thttps://x.org\nMaintainer: \u00e9\ufffd <>\n \n\n"))
    assert (one.name, one.version, one.architecture) == ("odd", "2", "")
    assert (one.source, one.source_version) == ("odd", "2")


@pytest.mark.parametrize(("status", "message"), [
    ("Package: a\nno field here\n", "line 2 is no field"),
    (" starts folded\n", "line 1 goes on with no field"),
    ("Package: a\nVersion: 1\nVersion: 2\n", "line 3 has Version once more"),
    ("Package: a\nStatus: install ok installed\n", "without name or version: a"),
    ("Version: 1\n", "without name or version: 1"),
    ("Package: a\nVersion: 1\n\nPackage: a\nVersion: 2\n", "a is listed twice"),
])
def test_a_list_that_dpkg_wouldnt_read_is_refused(tmp_path, status, message):
    with pytest.raises(SbomError, match=f"/var/lib/dpkg/status: .*{message}"):
        packages(tmp_path, status)


def test_a_root_without_the_list_is_refused(tmp_path):
    with pytest.raises(SbomError, match="no /var/lib/dpkg/status below the root"):
        sbom_debian.installed(Root(tmp_path))


def test_fields_go_on_in_indented_lines():
    assert list(paragraphs("A: 1\nB-c:\n two\n\tthree\n\nA: 4")) == [
        {"a": "1", "b-c": "\ntwo\nthree"}, {"a": "4"}]


def test_libraries_have_owners_by_place(tmp_path):
    root = Root(image(tmp_path))
    owners = sbom_debian.library_owners(root, sbom_debian.installed(root))
    assert {place: one.name for place, one in owners.items()} == {
        "usr/lib/x86_64-linux-gnu/libgrpc++.so.1.51": "libgrpc++1.51",
        "usr/lib/x86_64-linux-gnu/libgrpc++.so.1.51.1": "libgrpc++1.51",
        "usr/lib/x86_64-linux-gnu/libz.so.1": "zlib1g",
        "usr/lib/x86_64-linux-gnu/libc.so.6": "libc6"}


@pytest.mark.parametrize("one", [
    named("../../../tmp/x"), named("a/b"), named("x", "../y"), named("."), named("a\nb")])
def test_odd_names_never_become_paths(tmp_path, one):
    files = {f"{folder}/{one.name}:{one.architecture}.list": "/usr/lib/libx.so\n"
             for folder in ["var/lib/dpkg/info"]}
    files |= {f"usr/share/doc/{one.name}/copyright": copyright_file("ISC"), "usr/lib/x": ""}
    write(tmp_path / "a/b/c/d/e/root", files)
    root = Root(tmp_path / "a/b/c/d/e/root")
    assert sbom_debian.library_owners(root, [one]) == {}
    assert sbom_debian.licence(root, one) == (None, [])


@pytest.mark.parametrize(("text", "release"), [
    ('ID=debian\nVERSION_ID="12"\n', ("debian", "12")),
    ("ID=debian\n", ("debian", "")),
    ("VERSION_ID='24.04'\nID=\"ubuntu\"\n", ("ubuntu", "24.04")),
    ("ID=$(reboot)\nVERSION_ID=1 2\n", ("", "")),
])
def test_the_distribution_is_known(tmp_path, text, release):
    assert sbom_debian.release(Root(write(tmp_path, {"etc/os-release": text}))) == release


def copyright_file(*licences, format=MACHINE_READABLE):
    return f"Format: {format}\nUpstream-Name: x\n" + "".join(
        f"\nFiles: {number}/*\nCopyright: 2020 X\nLicense: {licence}\n"
        for number, licence in enumerate(licences)) + "\nLicense: Standing-Alone\n Its text.\n"


def licence_of(tmp_path, text):
    root = Root(write(tmp_path, {"usr/share/doc/x/copyright": text}))
    return sbom_debian.licence(root, named("x"))


@pytest.mark.parametrize(("licences", "expression"), [
    (["Expat"], "MIT"),
    (["GPL-2+"], "GPL-2.0-or-later"),
    (["LGPL-2.1", "LGPL-2.1"], "LGPL-2.1-only"),
    (["GPL-3.0+", "Apache-2.0"], "Apache-2.0 AND GPL-3.0-or-later"),
    (["GFDL-NIV-1.3+"], "GFDL-1.3-no-invariants-or-later"),
    (["BSD-3-clause or GPL-2", "zlib"], "(BSD-3-Clause OR GPL-2.0-only) AND Zlib"),
    (["BSD-3-clause or GPL-2"], "BSD-3-Clause OR GPL-2.0-only"),
    (["ISC and CC0-1.0 or BSL-1.0\n Text of it."], "ISC AND CC0-1.0 OR BSL-1.0"),
])
def test_certain_licences_are_declared(tmp_path, licences, expression):
    assert licence_of(tmp_path, copyright_file(*licences))[0] == expression


@pytest.mark.parametrize("licence", [
    "MIT", "public-domain", "Artistic", "GPL", "GPL-9", "LGPL-1+", "", "and", "Expat or", "or ISC",
    "ISC ISC ISC", "GPL-2+ with Autoconf exception", "ISC, and Zlib", "GPL-2.0-or-later",
    "LicenseRef-x", "NONE", "Expat) OR (ISC"])
def test_one_that_isnt_certain_leaves_all_open(tmp_path, licence):
    expression, names = licence_of(tmp_path, copyright_file("Expat", licence))
    assert expression is None
    assert names == sorted(filter(None, ["Expat", licence]))


@pytest.mark.parametrize("text", [
    "This package was debianized by hand.\nLicense: Expat\n",
    copyright_file("Expat", format="https://example.org/copyright-format/1.0/"),
    "Files: *\nLicense: Expat\n",
    copyright_file("Expat") + "\nnot a field\n",
    "", "\0\xff"])
def test_other_files_than_machine_readable_ones_say_nothing(tmp_path, text):
    assert licence_of(tmp_path, text) == (None, [])


def test_a_copyright_file_may_lie_in_another_packages_folder(tmp_path):
    write(tmp_path, {"usr/share/doc/base/copyright": copyright_file("ISC"),
                     "usr/share/doc/x": "->base"})
    assert sbom_debian.licence(Root(tmp_path), named("x"))[0] == "ISC"


def test_a_copyright_file_outside_of_the_root_isnt_read(tmp_path):
    write(tmp_path, {"outside": copyright_file("ISC")})
    write(tmp_path / "root", {"usr/share/doc/x/copyright": f"->{tmp_path}/outside",
                              "usr/share/doc/y/copyright": "->../../../../../outside"})
    for name in "xy":
        assert sbom_debian.licence(Root(tmp_path / "root"), named(name)) == (None, [])
