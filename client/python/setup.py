"""Adds to the wheel what is made from the project's own files: the stubs and the version."""

import re
from importlib import resources
from pathlib import Path

from grpc_tools import protoc
from setuptools import setup
from setuptools.command.build_py import build_py

PROJECT = Path(__file__).resolve().parents[2]
PROTO = PROJECT / "proto"


def version() -> str:
    declared = re.search(r"project\(docmem VERSION (\S+)", (PROJECT / "CMakeLists.txt").read_text())
    if not declared:
        raise RuntimeError(f"{PROJECT / 'CMakeLists.txt'} declares no version of the project")
    return declared[1]


class BuildWithStubs(build_py):
    def run(self) -> None:
        super().run()
        outputs = [f"--{kind}_out={self.build_lib}" for kind in ("python", "pyi", "grpc_python")]
        includes = [f"-I{PROTO}", f"-I{resources.files('grpc_tools') / '_proto'}"]
        protos = sorted(str(path) for path in (PROTO / "docmem").rglob("*.proto"))
        if protoc.main(["protoc", *includes, *outputs, *protos]) != 0:
            raise RuntimeError(f"protoc couldn't make the stubs from {PROTO}: see above")


setup(version=version(), cmdclass={"build_py": BuildWithStubs})
