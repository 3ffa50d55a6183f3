"""What dpkg and Debian's files say about the packages below a root."""

import re
from dataclasses import dataclass

from sbom_root import SbomError

STATUS = "var/lib/dpkg/status"
GONE = ("not-installed", "config-files")  # all other states have files of the package
NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")
ARCHITECTURE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
BLANKS = " \t\r"  # no others: a name stays what it is

COPYRIGHT_FORMAT = re.compile(
    r"https?://www\.debian\.org/doc/packaging-manuals/copyright-format/1\.0/?")
# Debian's short names that mean one SPDX licence and no other. MIT, BSD, Artistic, public-domain
# are left out: each is the name of several.
LICENCES = {name.lower(): spdx for name, spdx in {
    "0BSD": "0BSD", "Apache-2": "Apache-2.0", "Artistic-2": "Artistic-2.0",
    "BSD-2-clause": "BSD-2-Clause", "BSD-3-clause": "BSD-3-Clause", "BSL-1": "BSL-1.0",
    "CC-BY-3": "CC-BY-3.0", "CC-BY-4": "CC-BY-4.0", "CC-BY-SA-3": "CC-BY-SA-3.0",
    "CC-BY-SA-4": "CC-BY-SA-4.0", "CC0-1": "CC0-1.0", "Expat": "MIT", "FSFAP": "FSFAP",
    "FSFULLR": "FSFULLR", "ISC": "ISC", "MPL-1.1": "MPL-1.1", "MPL-2": "MPL-2.0",
    "OpenLDAP-2.8": "OLDAP-2.8", "PostgreSQL": "PostgreSQL", "Zlib": "Zlib",
}.items()}
GNU_LICENCE = re.compile(r"(agpl|lgpl|gpl|gfdl-niv|gfdl)-([0-9](?:\.[0-9])?)(\+?)")
GNU_VERSIONS = {"gpl": ("1.0", "2.0", "3.0"), "lgpl": ("2.0", "2.1", "3.0"), "agpl": ("3.0",),
                "gfdl": ("1.1", "1.2", "1.3"), "gfdl-niv": ("1.1", "1.2", "1.3")}


@dataclass(frozen=True)
class DebianPackage:
    name: str
    version: str
    architecture: str
    source: str
    source_version: str
    maintainer: str
    homepage: str

    @property
    def well_named(self):
        """Whether dpkg would take the names: others are told, but never become paths."""
        return bool(NAME.fullmatch(self.name) and ARCHITECTURE.fullmatch(self.architecture))


def paragraphs(text):
    """Paragraphs of `Field: value` lines as dictionaries with small keys; ValueError on others."""
    current, field = {}, None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip(BLANKS):
            if current:
                yield current
            current, field = {}, None
        elif line[0] in " \t":
            if field is None:
                raise ValueError(f"line {number} goes on with no field")
            current[field] += "\n" + line.strip(BLANKS)
        else:
            name, colon, value = line.partition(":")
            field = name.lower()
            if not colon or not re.fullmatch(r"[!-9;-~]+", name):
                raise ValueError(f"line {number} is no field")
            if field in current:
                raise ValueError(f"line {number} has {name} once more")
            current[field] = value.strip(BLANKS)
    if current:
        yield current


def _package(fields):
    name, version = fields.get("package", ""), fields.get("version", "")
    if not name or not version:
        raise ValueError(f"a package without name or version: {name or version or fields}")
    source = re.fullmatch(r"(\S+)(?:\s+\((\S+)\))?", fields.get("source", ""))
    return DebianPackage(
        name=name, version=version, architecture=fields.get("architecture", ""),
        source=source[1] if source else name,
        source_version=source[2] if source and source[2] else version,
        maintainer=fields.get("maintainer", ""), homepage=fields.get("homepage", ""))


def installed(root):
    """The packages with files below the root, in order."""
    text = root.text(STATUS)
    if text is None:
        raise SbomError(f"no /{STATUS} below the root: is it a Debian system?")
    packages = {}
    try:
        for fields in paragraphs(text):
            if fields.get("status", "").split(" ")[-1] in GONE:
                continue
            package = _package(fields)
            if (package.name, package.architecture) in packages:
                raise ValueError(f"{package.name} is listed twice")
            packages[package.name, package.architecture] = package
    except ValueError as error:
        raise SbomError(f"/{STATUS}: {error}") from error
    return [packages[key] for key in sorted(packages)]


def release(root):
    """(id, version) of the distribution, as in ("debian", "12"); empty where it isn't said."""
    text = root.text("etc/os-release") or ""
    values = dict(re.findall(r"""^(ID|VERSION_ID)=["']?([a-z0-9._-]+)["']?$""", text, re.MULTILINE))
    return values.get("ID", ""), values.get("VERSION_ID", "")


def library_owners(root, packages):
    """Which package brought a library: by its place, /lib and /usr/lib being told apart by none."""
    owners, folders = {}, {}
    for package in packages:
        if not package.well_named:
            continue
        stem = f"var/lib/dpkg/info/{package.name}"
        text = root.text(f"{stem}:{package.architecture}.list") or root.text(f"{stem}.list") or ""
        for line in text.split("\n"):
            folder, _, name = line.rpartition("/")
            if ".so" not in name:
                continue
            if folder not in folders:
                folders[folder] = root.resolve(folder)
            if folders[folder] is not None:
                owners[f"{folders[folder]}/{name}"] = package
    return owners


def _spdx_licence(name):
    plain = re.sub(r"(?<=[0-9])\.0(?=\+?$)", "", name.lower())  # Debian lets 2.0 stand for 2
    if plain in LICENCES:
        return LICENCES[plain]
    if not (gnu := GNU_LICENCE.fullmatch(plain)):
        return None
    family, version, later = gnu[1], gnu[2] if "." in gnu[2] else gnu[2] + ".0", bool(gnu[3])
    if version not in GNU_VERSIONS[family]:
        return None
    free = "-no-invariants" if family == "gfdl-niv" else ""
    return f"{family[:4].upper()}-{version}{free}-{'or-later' if later else 'only'}"


def _spdx_expression(expression):
    """An expression of Debian's in SPDX's words, or None. In both `and` binds before `or`; a comma,
    which turns that around, isn't understood."""
    result = []
    for index, word in enumerate(expression.split()):
        if index % 2:
            result.append({"and": "AND", "or": "OR"}.get(word.lower()))
        else:
            result.append(_spdx_licence(word))
    if not result or len(result) % 2 == 0 or None in result:
        return None
    return " ".join(result)


def licence(root, package):
    """(expression, names): what the copyright file of a package declares, all files together.

    The expression is None unless the file is machine-readable and each name in it is certain; the
    names are Debian's own, and empty where the file isn't machine-readable.
    """
    text = root.text(f"usr/share/doc/{package.name}/copyright") if package.well_named else None
    try:
        header, *others = paragraphs(text or "")
    except ValueError:
        return None, []
    if not COPYRIGHT_FORMAT.fullmatch(header.get("format", "")):
        return None, []
    names = {fields.get("license", "").split("\n")[0] for fields in others if "files" in fields}
    known = {_spdx_expression(name) for name in names}
    names = sorted(" ".join(name.split()) for name in names if name)
    if not known or None in known:
        return None, names
    known = sorted(known)
    if len(known) > 1:
        known = [f"({one})" if " OR " in one else one for one in known]
    return " AND ".join(known), names
