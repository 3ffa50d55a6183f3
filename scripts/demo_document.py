"""The demo's document: Debian's Social Contract with the Free Software Guidelines.

It is the file social-contract.txt.gz of the Debian package doc-debian, unpacked and otherwise left
byte for byte as it is. Slim images leave /usr/share/doc out, so the package is downloaded and
unpacked beside the demo's other files, never installed.
"""

import gzip
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

PACKAGE = "doc-debian"
MEMBER = "usr/share/doc/debian/social-contract.txt.gz"
# Of doc-debian 11.3+nmu1, version 1.2 of the contract: the text the adapter was trained for.
SHA256 = "be375fd14c0501fe8e9578ac399bbedcddb1b7e8f3863596014e718a3d0f25bc"


class DocumentError(Exception):
    """The document can't be had; says what to do."""


def _run(*command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _refresh_package_lists(folder):
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    _run(*as_root, "apt-get", "update", folder=folder)


def _download(folder):
    try:
        if _run("apt-get", "download", PACKAGE, folder=folder).returncode != 0:
            _refresh_package_lists(folder)
            _run("apt-get", "download", PACKAGE, folder=folder)
        packages = list(folder.glob("*.deb"))
        if packages:
            _run("dpkg-deb", "-x", str(packages[0]), "unpacked", folder=folder)
    except FileNotFoundError as error:
        raise DocumentError(f"{error.filename} isn't here: the demo needs Debian 12") from error
    member = folder / "unpacked" / MEMBER
    if not member.is_file():
        raise DocumentError(
            f"the package {PACKAGE} couldn't be downloaded: check the network, run apt-get update "
            "as root, then run again"
        )
    return gzip.decompress(member.read_bytes())


def provide(path: Path) -> Path:
    """Puts the document at `path` unless it is already there."""
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == SHA256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        text = _download(Path(folder))
        if hashlib.sha256(text).hexdigest() != SHA256:
            raise DocumentError(
                f"{PACKAGE} now has another text than the one the demo's adapter was trained for: "
                "train it anew, see demo/README.md"
            )
        new = Path(folder) / path.name
        new.write_bytes(text)
        new.rename(path)
    return path
