"""Certificates made on the fly by openssl."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

_NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def _openssl(folder, *arguments):
    subprocess.run(["openssl", *map(str, arguments)], cwd=folder, check=True, capture_output=True,
                   timeout=30)


@dataclass(frozen=True)
class Pair:
    certificate: Path
    key: Path

    def read(self):
        """(key, certificate), as grpc wants them."""
        return self.key.read_bytes(), self.certificate.read_bytes()

    def copy_to(self, certificate, key):
        """Puts both in the place of two files, one after the other, as an operator would."""
        for source, target in ((self.certificate, certificate), (self.key, key)):
            beside = target.with_suffix(".new")
            beside.write_bytes(source.read_bytes())
            beside.rename(target)


class Authority:
    """Signs certificates, all of them in its folder."""

    def __init__(self, folder, name="authority"):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True)
        self.certificate = self.folder / "ca.pem"
        _openssl(self.folder, "req", "-x509", *_NEW_KEY, "-keyout", "ca.key", "-out",
                 "ca.pem", "-days", 30, "-subj", f"/CN={name}")

    def issue(self, name, host="localhost", days=20):
        """For `host`, named `name`; with negative `days` it has expired."""
        pair = Pair(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        _openssl(self.folder, "req", *_NEW_KEY, "-keyout", pair.key, "-out", f"{name}.csr",
                 "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{host}")
        _openssl(self.folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey",
                 "ca.key", "-CAcreateserial", "-days", days, "-copy_extensions", "copy", "-out",
                 pair.certificate)
        return pair
