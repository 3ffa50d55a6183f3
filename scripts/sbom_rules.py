"""The rules of SPDX 2.3 (JSON) for as much of it as make_sbom.py writes, and a few of ours."""

import hashlib
import re
from datetime import datetime

DOCUMENT = "SPDXRef-DOCUMENT"
REQUIRED = {
    "document": {"spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace",
                 "creationInfo", "packages", "files", "relationships"},
    "creationInfo": {"created", "creators"},
    "package": {"SPDXID", "name", "versionInfo", "supplier", "downloadLocation", "filesAnalyzed",
                "licenseConcluded", "licenseDeclared", "copyrightText", "externalRefs"},
    "externalRef": {"referenceCategory", "referenceType", "referenceLocator"},
    "file": {"SPDXID", "fileName", "fileTypes", "checksums", "licenseConcluded", "copyrightText"},
    "relationship": {"spdxElementId", "relationshipType", "relatedSpdxElement"},
}
OPTIONAL = {"package": {"packageVerificationCode", "homepage", "sourceInfo", "licenseComments",
                        "comment", "primaryPackagePurpose"}}
HEX_DIGITS = {"SHA1": 40, "SHA256": 64}
PURPOSES = {"APPLICATION", "CONTAINER", "LIBRARY", "OPERATING_SYSTEM"}
RELATIONSHIPS = {"DESCRIBES", "CONTAINS", "DEPENDS_ON"}

SPDXID = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
ABSOLUTE_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~:/?@!$&'()*+,;=%\[\]-]+")
AGENT = re.compile(r"(Person|Organization): [^()\n]*[^()\s]( \([^()\s]+\))?")
TOOL = re.compile(r"Tool: \S+-\S+")
PURL = re.compile(r"pkg:[a-z]+(/[A-Za-z0-9._~%-]+)+@[A-Za-z0-9._~:%-]+"
                  r"(\?[a-z_]+=[A-Za-z0-9._~:%-]+(&[a-z_]+=[A-Za-z0-9._~:%-]+)*)?")
LICENCE = re.compile(r"NOASSERTION|NONE|"
                     r"\(*[A-Za-z0-9.-]+\)*( (AND|OR) \(*[A-Za-z0-9.-]+\)*)*")


def verification_code(sha1s):
    """SPDX's digest of a package's files."""
    return hashlib.sha1("".join(sorted(sha1s)).encode()).hexdigest()


def complaints(document):
    """What breaks a rule, one line each."""
    return list(_complaints(document))


def _complaints(document):
    missing = list(_fields("document", "the document", document))
    yield from missing
    if missing:
        return
    yield from _head(document)
    for package in document["packages"]:
        yield from _package(package)
    for file in document["files"]:
        yield from _file(file)
    yield from _ids(document)
    yield from _relationships(document)


def _fields(kind, who, thing):
    for name in sorted(REQUIRED[kind] - thing.keys()):
        yield f"{who} lacks {name}"
    for name in sorted(thing.keys() - REQUIRED[kind] - OPTIONAL.get(kind, set())):
        yield f"{who} has an unknown field {name}"
    for name, value in thing.items():
        if value in ("", [], {}) and name != "files":
            yield f"{who} has an empty {name}"


def _head(document):
    for name, value in [("spdxVersion", "SPDX-2.3"), ("dataLicense", "CC0-1.0"),
                        ("SPDXID", DOCUMENT)]:
        if document[name] != value:
            yield f"{name} is {document[name]}, not {value}"
    if not ABSOLUTE_URI.fullmatch(document["documentNamespace"]):
        yield f"documentNamespace is no absolute URI: {document['documentNamespace']}"
    creation = document["creationInfo"]
    yield from _fields("creationInfo", "creationInfo", creation)
    try:
        datetime.strptime(creation.get("created", ""), "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        yield f"created is no time in UTC: {creation.get('created')}"
    for creator in creation.get("creators", []):
        if not TOOL.fullmatch(creator) and not AGENT.fullmatch(creator):
            yield f"no tool, person or organisation: {creator}"


def _package(package):
    who = package.get("SPDXID", "a package")
    yield from _fields("package", who, package)
    supplier = package.get("supplier", "NOASSERTION")
    if supplier != "NOASSERTION" and not AGENT.fullmatch(supplier):
        yield f"{who} has no supplier as SPDX writes it: {supplier}"
    if package.get("primaryPackagePurpose", "LIBRARY") not in PURPOSES:
        yield f"{who} has an unknown purpose"
    for name in ("downloadLocation", "homepage"):
        value = package.get(name, "NOASSERTION")
        if value != "NOASSERTION" and not ABSOLUTE_URI.fullmatch(value.partition("#")[0]):
            yield f"{who} has a {name} that is no URI: {value}"
    for name in ("licenseConcluded", "licenseDeclared"):
        value = package.get(name, "NOASSERTION")
        if not LICENCE.fullmatch(value) or value.count("(") != value.count(")"):
            yield f"{who} has a {name} that is no licence expression: {value}"
    for reference in package.get("externalRefs", []):
        yield from _fields("externalRef", f"a reference of {who}", reference)
        kind = (reference.get("referenceCategory"), reference.get("referenceType"))
        if kind != ("PACKAGE-MANAGER", "purl"):
            yield f"{who} has a reference of an unknown kind: {kind}"
        elif not PURL.fullmatch(reference.get("referenceLocator", "")):
            yield f"{who} has no package URL: {reference.get('referenceLocator')}"


def _file(file):
    who = file.get("SPDXID", "a file")
    yield from _fields("file", who, file)
    if not file.get("fileName", "").startswith("./"):
        yield f"{who} has a name that doesn't start with ./: {file.get('fileName')}"
    checksums = {one.get("algorithm"): one.get("checksumValue", "")
                 for one in file.get("checksums", [])}
    for algorithm, digits in HEX_DIGITS.items():
        if not re.fullmatch(f"[0-9a-f]{{{digits}}}", checksums.get(algorithm, "")):
            yield f"{who} has no {algorithm}"
    for algorithm in checksums.keys() - HEX_DIGITS.keys():
        yield f"{who} has an unknown checksum {algorithm}"


def _ids(document):
    seen = {DOCUMENT}
    for element in document["packages"] + document["files"]:
        name = element.get("SPDXID", "")
        if not SPDXID.fullmatch(name):
            yield f"no SPDXID: {name}"
        if name in seen:
            yield f"{name} is there twice"
        seen.add(name)


def _relationships(document):
    packages = {one.get("SPDXID"): one for one in document["packages"]}
    files = {one.get("SPDXID"): one for one in document["files"]}
    linked, contents, seen = set(), {name: [] for name in packages}, set()
    for one in document["relationships"]:
        yield from _fields("relationship", "a relationship", one)
        key = origin, kind, target = tuple(one.get(name, "") for name in (
            "spdxElementId", "relationshipType", "relatedSpdxElement"))
        if kind not in RELATIONSHIPS:
            yield f"an unknown relationship: {' '.join(key)}"
        if key in seen:
            yield f"a relationship is there twice: {' '.join(key)}"
        seen.add(key)
        for end in (origin, target):
            if end not in packages and end not in files and end != DOCUMENT:
                yield f"a relationship with something unknown, {end}: {' '.join(key)}"
        if (kind == "DESCRIBES") != (origin == DOCUMENT):
            yield f"the document describes, and nothing else does: {' '.join(key)}"
        linked.add(target)
        if kind == "CONTAINS" and origin in packages and target in files:
            contents[origin].append(files[target])
    if DOCUMENT not in {origin for origin, _, _ in seen}:
        yield "the document describes nothing"
    for name in sorted(str(name) for name in (packages.keys() | files.keys()) - linked):
        yield f"nothing refers to {name}"
    for name, package in packages.items():
        yield from _contents(name, package, contents[name])


def _contents(name, package, files):
    code = package.get("packageVerificationCode", {}).get("packageVerificationCodeValue")
    if not package.get("filesAnalyzed"):
        if files or code:
            yield f"{name} has files, and says that they weren't analysed"
        return
    sha1s = [one["checksumValue"] for file in files for one in file.get("checksums", [])
             if one.get("algorithm") == "SHA1"]
    if code != verification_code(sha1s):
        yield f"{name} has another packageVerificationCode than its files make"
