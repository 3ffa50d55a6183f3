#!/usr/bin/env python3
"""Writes the bill of materials of what DocMem ships, as SPDX 2.3 in JSON.

    scripts/make_sbom.py --root / --version 0.1.0 --output sbom.spdx.json            # an image
    scripts/make_sbom.py --package --root FOLDER --version 0.1.0 --output sbom.spdx.json

Everything is read from files below the root: dpkg's lists, the programs, the libraries beside them.
Nothing is run and nothing asked of a network. The same files and the same time (--created, or
SOURCE_DATE_EPOCH) make the same bytes.
"""

import argparse
import hashlib
import json
import os
import re
import sys
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

import sbom_debian
import sbom_elf
from sbom_root import Root, SbomError
from sbom_rules import ABSOLUTE_URI, DOCUMENT, complaints, verification_code

PINS = Path(__file__).resolve().parent / "requirements-build.txt"
PREFIXES = ["usr/local", "usr"]
PROGRAMS = ["docmemd", "docmem"]
# Which wheel brings a library that is installed beside the programs (cmake/Install.cmake).
WHEELS = {"libtorch_cpu": "torch", "libtorch_cuda": "torch", "libc10": "torch",
          "libc10_cuda": "torch", "libgomp": "torch", "libcudart": "nvidia-cuda-runtime",
          "libcupti": "nvidia-cuda-cupti"}
# Debian packages whose code is in the programs themselves: they consist of headers.
COMPILED_IN = ["libcli11-dev", "nlohmann-json3-dev"]

TOP = "SPDXRef-docmem-image"
DOCMEM = "SPDXRef-docmem"
SYSTEM = "SPDXRef-OperatingSystem"  # by this name Trivy knows the distribution
UNKNOWN = "NOASSERTION"
IN_THE_PROGRAMS = "Its code is compiled into DocMem's programs."


def spdx_id(kind, *names):
    """An SPDXID of its own for each tuple of names, however odd."""
    joined = "-".join(names)
    plain = re.sub(r"[^A-Za-z0-9.-]", "-", joined)
    if plain != joined or any("-" in name for name in names[1:]):
        plain += "-" + hashlib.sha256("\0".join(names).encode()).hexdigest()[:12]
    return f"SPDXRef-{kind}-{plain}"


def purl(*path, version, **qualifiers):
    def escape(text):
        return quote(text, safe=":")

    url = "pkg:" + "/".join(escape(name) for name in path) + "@" + escape(version)
    given = [f"{key}={escape(value)}" for key, value in sorted(qualifiers.items()) if value]
    return url + ("?" + "&".join(given) if given else "")


def agent(maintainer):
    """`Name <address>` as SPDX writes who supplies something."""
    parts = re.fullmatch(r"([^<>]*)(?:<([^<>()\s]+)>)?", maintainer.strip(" ,"))
    name, address = parts.groups("") if parts else ("", "")
    name = " ".join(re.sub(r"[^\w .,'&+-]", " ", name).split())
    if not name:
        return UNKNOWN
    group = re.search(r"\b(Team|Maintainers?|Group|Project|Developers|Packagers)\b", name)
    return f"{'Organization' if group else 'Person'}: {name}" + (f" ({address})" if address else "")


def package(identity, name, version, url="", **more):
    return {
        "SPDXID": identity, "name": name, "versionInfo": version, "supplier": UNKNOWN,
        "downloadLocation": UNKNOWN, "filesAnalyzed": False, "licenseConcluded": UNKNOWN,
        "licenseDeclared": UNKNOWN, "copyrightText": UNKNOWN,
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": url or purl("generic", name, version=version)}],
    } | more


def debian_package(root, one, release):
    distribution, number = release
    built_from = one.source if one.source_version == one.version else (
        f"{one.source}@{one.source_version}")
    declared, names = sbom_debian.licence(root, one)
    more = {"supplier": agent(one.maintainer),
            # Scanners look for the source package, by which Debian's advisories go.
            "sourceInfo": f"built package from: {one.source} {one.source_version}",
            "licenseDeclared": declared or UNKNOWN}
    if re.match(r"https?://[\w-]+\.", one.homepage) and ABSOLUTE_URI.fullmatch(
            one.homepage.partition("#")[0]):
        more["homepage"] = one.homepage
    if names:
        more["licenseComments"] = (
            "Debian's copyright file names, for all files of the source package: "
            + "; ".join(names))
    return package(
        spdx_id("deb", one.name, one.architecture), one.name, one.version,
        purl("deb", distribution or "debian", one.name, version=one.version,
             arch=one.architecture, distro=distribution and number and f"{distribution}-{number}",
             upstream=built_from if built_from != one.name else ""),
        **more)


def digests(root, path):
    one, other = hashlib.sha1(), hashlib.sha256()
    with root.open(path) as file:
        if file is None:
            raise SbomError(f"/{path} is no file")
        while block := file.read(1 << 20):
            one.update(block)
            other.update(block)
    return one.hexdigest(), other.hexdigest()


class Bill:
    """The document while it grows."""

    def __init__(self):
        self.packages, self.files, self.relationships = [], [], set()

    def add(self, one, parent):
        self.packages.append(one)
        self.relate(parent, "DESCRIBES" if parent == DOCUMENT else "CONTAINS", one["SPDXID"])
        return one

    def relate(self, origin, kind, target):
        self.relationships.add((origin, kind, target))

    def add_files(self, root, owner, paths):
        sha1s = []
        for path in sorted(paths):
            sha1, sha256 = digests(root, path)
            sha1s.append(sha1)
            identity = spdx_id("File", path)
            self.files.append({
                "SPDXID": identity, "fileName": f"./{path}", "fileTypes": ["BINARY"],
                "checksums": [{"algorithm": "SHA1", "checksumValue": sha1},
                              {"algorithm": "SHA256", "checksumValue": sha256}],
                "licenseConcluded": UNKNOWN, "copyrightText": UNKNOWN})
            self.relate(owner["SPDXID"], "CONTAINS", identity)
        owner["filesAnalyzed"] = True
        owner["packageVerificationCode"] = {
            "packageVerificationCodeValue": verification_code(sha1s)}

    def document(self, version, created):
        relationships = [dict(zip(("spdxElementId", "relationshipType", "relatedSpdxElement"), one))
                         for one in sorted(self.relationships)]
        [top] = [target for _, kind, target in self.relationships if kind == "DESCRIBES"]
        name = f"{top.removeprefix('SPDXRef-')}-{version}"
        document = {
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": DOCUMENT, "name": name,
            "creationInfo": {"created": created, "creators": [f"Tool: docmem-make_sbom-{version}"]},
            "packages": sorted(self.packages, key=lambda one: one["SPDXID"]),
            "files": sorted(self.files, key=lambda one: one["SPDXID"]),
            "relationships": relationships}
        digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
        return document | {"documentNamespace": f"https://spdx.org/spdxdocs/{name}-{digest}"}


def pins():
    """Versions of the wheels that the build takes code from."""
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)$", PINS.read_text(), re.MULTILINE))


def programs(root):
    for prefix in PREFIXES:
        places = [root.resolve(f"{prefix}/bin/{name}") for name in PROGRAMS]
        if all(places):
            return places
    raise SbomError("neither /usr/local/bin nor /usr/bin has docmemd and docmem")


def bundled(root, program):
    """Libraries in the folder that the program's run path names, by the wheel they come from."""
    library = sbom_elf.read_at(root, program)
    folders = sbom_elf.run_path(library, program, library.runpath) if library else []
    folder = root.resolve(folders[0]) if folders else None
    if folder is None:
        raise SbomError(f"/{program} has no run path to a folder: was it installed?")
    wheels = {}
    for name in root.names(folder):
        if root.resolve(f"{folder}/{name}") != f"{folder}/{name}":
            continue  # a link: what it leads to is counted where it lies
        wheel = WHEELS.get(name.partition(".")[0])
        if wheel is None:
            raise SbomError(f"/{folder}/{name} is of no wheel in WHEELS of {Path(__file__).name}")
        wheels.setdefault(wheel, []).append(f"{folder}/{name}")
    return wheels


def add_docmem(bill, root, version, parent):
    """DocMem, its programs, what lies beside them; returns also each library's wheel by place."""
    places = programs(root)
    docmem = bill.add(package(DOCMEM, "docmem", version, primaryPackagePurpose="APPLICATION"),
                      parent)
    bill.add_files(root, docmem, places)
    files, wheels = bundled(root, places[0]), {}
    for name, pin in sorted(pins().items()):
        wheel = bill.add(package(spdx_id("pypi", name), name, pin, purl("pypi", name, version=pin),
                                 primaryPackagePurpose="LIBRARY"), DOCMEM)
        if name in files:
            bill.add_files(root, wheel, files[name])
            wheel["comment"] = "What is linked into these libraries isn't listed."
            wheels |= {path: wheel["SPDXID"] for path in files[name]}
        elif name in WHEELS.values():
            raise SbomError(f"no library of {name} lies beside /{places[0]}")
        else:
            wheel["comment"] = IN_THE_PROGRAMS
    if unpinned := files.keys() - pins().keys():
        raise SbomError(f"{PINS.name} has no version of {', '.join(sorted(unpinned))}")
    return docmem, places, wheels


def add_compiled_in(bill, build_root):
    release = sbom_debian.release(build_root)
    there = {one.name: one for one in sbom_debian.installed(build_root)}
    for name in COMPILED_IN:
        if name not in there:
            raise SbomError(f"{name} isn't installed where DocMem was built")
        bill.add(debian_package(build_root, there[name], release) | {
            "SPDXID": spdx_id("compiled-in", name), "comment": IN_THE_PROGRAMS}, DOCMEM)


def add_debian(bill, root, version):
    """The image with its distribution; returns the SPDXID of the package that owns each library."""
    bill.add(package(TOP, "docmem-image", version, primaryPackagePurpose="CONTAINER"), DOCUMENT)
    distribution, number = release = sbom_debian.release(root)
    parent = TOP
    if distribution and number:
        bill.add(package(SYSTEM, distribution, number, primaryPackagePurpose="OPERATING_SYSTEM"),
                 TOP)
        parent = SYSTEM
    # DocMem's own Debian package is described as DocMem: Debian's advisories don't know it.
    packages = [one for one in sbom_debian.installed(root) if one.name != "docmem"]
    for one in packages:
        bill.add(debian_package(root, one, release), parent)
    return {place: spdx_id("deb", one.name, one.architecture)
            for place, one in sbom_debian.library_owners(root, packages).items()}


def make(root, version, created, is_package=False, build_root=None):
    """The document. `build_root` has the packages that DocMem was compiled with."""
    bill = Bill()
    owners = {} if is_package else add_debian(bill, root, version)
    docmem, places, wheels = add_docmem(bill, root, version, DOCUMENT if is_package else TOP)
    if build_root:
        add_compiled_in(bill, build_root)
    owners |= wheels
    missing = set()
    for program in places:
        libraries, absent = sbom_elf.closure(root, program)
        missing.update(absent)
        for path in libraries:
            if path not in owners:
                raise SbomError(f"no package brings /{path}, which /{program} loads")
            bill.relate(DOCMEM, "DEPENDS_ON", owners[path])
    if missing and not is_package:
        raise SbomError(f"libraries are missing: {', '.join(sorted(missing))}")
    if missing:
        docmem["comment"] = "Needs these libraries of the system: " + ", ".join(sorted(missing))
    document = bill.document(version, created)
    if broken := complaints(document):
        raise SbomError("the document breaks rules of SPDX: " + "; ".join(broken[:5]))
    return document


def version_text(text):
    if not re.fullmatch(r"[0-9][0-9A-Za-z.~-]*", text):
        raise argparse.ArgumentTypeError(f"no version: {text!r}")
    return text


def created_time(text):
    """SPDX's time from that text, else from SOURCE_DATE_EPOCH, else from the clock."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        if text:
            moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")
        elif epoch:
            moment = datetime.fromtimestamp(int(epoch), timezone.utc)
        else:
            moment = datetime.now(timezone.utc)
    except (ValueError, OverflowError, OSError) as error:
        raise SbomError(f"no time: {text or epoch}") from error
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", type=Path, required=True, help="folder with an image's files")
    parser.add_argument("--package", action="store_true",
                        help="the root has a Debian package's files and no system around them")
    parser.add_argument("--build-root", type=Path,
                        help="root of the system DocMem was built on: packages made of headers")
    parser.add_argument("--version", type=version_text, required=True, help="DocMem's")
    parser.add_argument("--created", metavar="YYYY-MM-DDTHH:MM:SSZ",
                        help="default: SOURCE_DATE_EPOCH, else now")
    parser.add_argument("--output", type=Path, help="default: standard output")
    options = parser.parse_args()
    try:
        document = make(Root(options.root), options.version, created_time(options.created),
                        options.package, options.build_root and Root(options.build_root))
        text = json.dumps(document, indent=1) + "\n"
        if not options.output:
            sys.stdout.write(text)
            return
        options.output.write_text(text, encoding="ascii")
        options.output.chmod(0o644)  # it goes into packages as it is
    except (SbomError, OSError) as error:
        sys.exit(f"{Path(__file__).name}: {error}")


if __name__ == "__main__":
    main()
