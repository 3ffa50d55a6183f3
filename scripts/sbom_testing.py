"""A made-up Debian with DocMem in it, and ELF files of a few hundred bytes."""

import struct

X86_64, AARCH64 = 62, 183
SYSTEM_LIBRARIES = "usr/lib/x86_64-linux-gnu"
TABLES_AT = 64 + 2 * 56  # behind the header and two segments

MACHINE_READABLE = "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"

STATUS = """\
Package: libgrpc++1.51
Status: install ok installed
Priority: optional
Architecture: amd64
Multi-Arch: same
Source: grpc (1.51.1-3)
Version: 1.51.1-3+b1
Maintainer: Laszlo Boszormenyi (GCS) <gcs@debian.org>
Description: high performance general RPC framework
 A modern RPC framework.
 .
 Package: this-is-no-field
Homepage: https://www.grpc.io/

Package: zlib1g
Status: hold ok installed
Architecture: amd64
Source: zlib
Version: 1:1.2.13.dfsg-1
Maintainer: Mark Brown <broonie@debian.org>

Package: libc6
Status: install ok half-configured
Architecture: amd64
Source: glibc
Version: 2.36-9+deb12u13
Maintainer: GNU Libc Maintainers <debian-glibc@lists.debian.org>
Homepage: not a web page

Package: tar
Status: install ok installed
Architecture: amd64
Version: 1.34+dfsg-1.2

Package: purged-but-for-settings
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""


def elf(needed=(), soname="", rpath="", runpath="", machine=X86_64):
    """A little-endian ELF file of 64 bits that has a dynamic segment and nothing else."""
    strings, entries = b"\0", []
    for tag, text in [*((1, name) for name in needed), (14, soname), (15, rpath), (29, runpath)]:
        if text:
            entries.append((tag, len(strings)))
            strings += text.encode() + b"\0"
    table_size = (len(entries) + 3) * 16
    entries += [(5, 0x1000 + TABLES_AT + table_size), (10, len(strings)), (0, 0)]
    table = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    size = TABLES_AT + table_size + len(strings)
    header = struct.pack("<4sBBB9xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 3, machine, 1, 0, 64, 0, 0,
                         64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, 0x1000, 0x1000, size, size, 0x1000)
    dynamic = struct.pack("<IIQQQQQQ", 2, 4, TABLES_AT, 0x1000 + TABLES_AT, 0x1000 + TABLES_AT,
                          table_size, table_size, 8)
    return header + load + dynamic + table + strings


def write(root, files):
    """Files by path; a string that starts with -> is a link."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content.startswith("->"):
            path.symlink_to(content[2:])
        else:
            path.write_text(content)
    return root


def docmem_files(prefix):
    """DocMem as it is installed: docmemd needs libtorch_cpu, that the others beside it."""
    runpath = "$ORIGIN/../lib/docmem"
    return {
        f"{prefix}/bin/docmemd": elf(["libgrpc++.so.1.51", "libtorch_cpu.so", "libc.so.6"],
                                     runpath=runpath),
        f"{prefix}/bin/docmem": elf(["libgrpc++.so.1.51", "libc.so.6"], runpath=runpath),
        f"{prefix}/lib/docmem/libtorch_cpu.so": elf(
            ["libc10.so", "libgomp.so.1", "libcudart.so.13", "libcupti.so.13", "libc.so.6"],
            soname="libtorch_cpu.so", rpath="$ORIGIN"),
        f"{prefix}/lib/docmem/libc10.so": elf(["libc.so.6"], soname="libc10.so"),
        f"{prefix}/lib/docmem/libgomp.so.1": elf(soname="libgomp.so.1"),
        f"{prefix}/lib/docmem/libcudart.so.13": elf(soname="libcudart.so.13"),
        f"{prefix}/lib/docmem/libcupti.so.13": elf(soname="libcupti.so.13"),
    }


def image(folder):
    """The root of an image with four packages, of which docmemd uses three."""
    owned = {"libgrpc++1.51:amd64": [f"/{SYSTEM_LIBRARIES}/libgrpc++.so.1.51",
                                     f"/{SYSTEM_LIBRARIES}/libgrpc++.so.1.51.1"],
             "zlib1g": ["/lib/x86_64-linux-gnu/libz.so.1"],  # as before /lib became a link
             "libc6:amd64": ["/lib/x86_64-linux-gnu/libc.so.6"],
             "tar": ["/bin/tar"]}
    return write(folder, docmem_files("usr/local") | {
        "usr/lib/os-release": 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\nVERSION_ID="12"\n',
        "etc/os-release": "->../usr/lib/os-release",
        "lib": "->usr/lib",
        "etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
        "etc/ld.so.conf.d/x86_64-linux-gnu.conf": "# Multiarch\n/lib/x86_64-linux-gnu\n",
        f"{SYSTEM_LIBRARIES}/libgrpc++.so.1.51": "->libgrpc++.so.1.51.1",
        f"{SYSTEM_LIBRARIES}/libgrpc++.so.1.51.1": elf(["libz.so.1", "libc.so.6"],
                                                       soname="libgrpc++.so.1.51"),
        f"{SYSTEM_LIBRARIES}/libz.so.1": elf(["libc.so.6"], soname="libz.so.1"),
        f"{SYSTEM_LIBRARIES}/libc.so.6": elf(soname="libc.so.6"),
        "var/lib/dpkg/status": STATUS,
        "usr/share/doc/zlib1g/copyright":
            f"Format: {MACHINE_READABLE}\n\nFiles: *\nCopyright: 1995 J. Gailly\nLicense: Zlib\n",
        "usr/share/doc/libc6/copyright": "This is the Debian prepackaged version of glibc.\n",
    } | {f"var/lib/dpkg/info/{name}.list": "/.\n" + "\n".join(paths) + "\n"
         for name, paths in owned.items()})
