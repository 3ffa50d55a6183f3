"""Which shared libraries a program loads, found as the dynamic loader of glibc finds them.

Read from the files alone, so that a root for other machines than this one will do. What is loaded
by dlopen() isn't seen, nor are variants for certain processors (glibc-hwcaps).
"""

import fnmatch
import os
import struct
from dataclasses import dataclass, field

from sbom_root import SbomError

HEADER = struct.Struct("<4sBB10xHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
ENTRY = struct.Struct("<qQ")
ELF64, LITTLE_ENDIAN = 2, 1
LOAD, DYNAMIC = 1, 2
END, NEEDED, STRING_TABLE, STRINGS_SIZE, SONAME, RPATH, RUNPATH = 0, 1, 5, 10, 14, 15, 29
MAX_TABLE_BYTES = 1 << 22  # of segments or entries: far above any library's
MAX_NAME_BYTES = 4096

MULTIARCH = {62: "x86_64-linux-gnu", 183: "aarch64-linux-gnu"}  # by the machine of the header


@dataclass
class Library:
    """A program or library: its own word about itself."""
    machine: int
    needed: list = field(default_factory=list)
    soname: str = ""
    rpath: list = field(default_factory=list)
    runpath: list = field(default_factory=list)


def _read_at(file, offset, size):
    if size > MAX_TABLE_BYTES or offset >= 1 << 62:
        raise ValueError("no file has such a table")
    file.seek(offset)
    data = file.read(size)
    if len(data) < size:
        raise ValueError("it ends too early")
    return data


def _file_offset(segments, address):
    for kind, _, offset, start, _, size, _, _ in segments:
        if kind == LOAD and start <= address < start + size:
            return offset + address - start
    raise ValueError("a table outside of all segments")


def read(file):
    """The library in an open file; ValueError where it is none."""
    magic, width, order, _, machine, *_, segments_at, _, _, _, entry_size, count, _, _, _ = (
        HEADER.unpack(_read_at(file, 0, HEADER.size)))
    if (magic, width, order) != (b"\x7fELF", ELF64, LITTLE_ENDIAN) or entry_size != SEGMENT.size:
        raise ValueError("not an ELF file of 64 bits, little endian")
    segments = list(SEGMENT.iter_unpack(_read_at(file, segments_at, count * SEGMENT.size)))
    library = Library(machine)
    dynamic = next((segment for segment in segments if segment[0] == DYNAMIC), None)
    if dynamic is None:
        return library
    entries = []
    size = dynamic[5] - dynamic[5] % ENTRY.size
    for tag, value in ENTRY.iter_unpack(_read_at(file, dynamic[2], size)):
        if tag == END:
            break
        entries.append((tag, value))
    places = dict(entries)
    if STRING_TABLE not in places:
        return library
    strings = _file_offset(segments, places[STRING_TABLE])

    def text(offset):  # one by one: libtorch's table has tens of megabytes
        size = min(places.get(STRINGS_SIZE, 0) - offset, MAX_NAME_BYTES)
        name, end, _ = _read_at(file, strings + offset, max(size, 0)).partition(b"\0")
        if not end:
            raise ValueError("a name outside of its table")
        return name.decode("utf-8", "replace")

    for tag, value in entries:
        if tag == NEEDED:
            library.needed.append(text(value))
        elif tag == SONAME:
            library.soname = text(value)
        elif tag == RPATH:
            library.rpath = text(value).split(":")
        elif tag == RUNPATH:
            library.runpath = text(value).split(":")
    return library


def read_at(root, path):
    """The library at a path below the root, or None where there is none."""
    with root.open(path) as file:
        try:
            return file and read(file)
        except ValueError:  # one for another machine, as the loader passes over, or none at all
            return None


def run_path(library, path, entries):
    """Folders of a run path; relative ones, which depend on who starts it, are left out."""
    origin = "/" + os.path.dirname(path)
    folders = [entry.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for entry in entries]
    return [folder for folder in folders if folder.startswith("/") and "$" not in folder]


def system_folders(root, machine, configuration="etc/ld.so.conf", depth=0):
    """Where the loader looks behind all run paths: as ld.so.conf says, then the usual folders."""
    folders = []
    for line in (root.text(configuration) or "").split("\n"):
        words = line.split("#")[0].split()
        if len(words) == 2 and words[0] == "include" and depth < 4:
            folder, pattern = os.path.split(os.path.join("/etc", words[1]))
            for name in fnmatch.filter(root.names(folder), pattern):
                folders += system_folders(root, machine, f"{folder}/{name}".lstrip("/"), depth + 1)
        elif len(words) == 1 and words[0].startswith("/"):
            folders.append(words[0])
    if depth == 0:
        multiarch = MULTIARCH.get(machine, "")
        folders += [f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib", "/usr/lib"]
    return folders


@dataclass
class Loaded:
    """A library in its place, and who loaded it."""
    path: str
    library: Library
    loader: "Loaded | None" = None

    def run_paths(self):
        # An old RPATH also serves what its library loads, and so on, unless there is a RUNPATH.
        if self.library.runpath:
            return run_path(self.library, self.path, self.library.runpath)
        folders, one = [], self
        while one:
            if not one.library.runpath:
                folders += run_path(one.library, one.path, one.library.rpath)
            one = one.loader
        return folders


def closure(root, program):
    """(places, missing) of all that a program loads, itself left out: the places of the libraries
    below the root, and the names that nothing below the root answers to."""
    place = root.resolve(program)
    library = place and read_at(root, place)
    if not library:
        raise SbomError(f"/{program} is no program for Linux of 64 bits")
    system = system_folders(root, library.machine)
    waiting, known, places, missing = [Loaded(place, library)], set(), set(), set()
    while waiting:
        one = waiting.pop(0)
        for name in one.library.needed:
            if name in known:
                continue
            known.add(name)
            if not (found := _find(root, name, one, system)):
                missing.add(name)
                continue
            known.add(found.library.soname)
            if found.path not in places:
                places.add(found.path)
                waiting.append(found)
    return sorted(places), sorted(missing)


def _find(root, name, loader, system):
    folders = [""] if "/" in name else loader.run_paths() + system
    for folder in folders:
        place = root.resolve(f"{folder}/{name}")
        library = place and read_at(root, place)
        if library and library.machine == loader.library.machine:
            return Loaded(place, library, loader)
    return None
