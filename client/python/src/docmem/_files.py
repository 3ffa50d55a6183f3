"""Files and folders that appear only when they are whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def _part_of(path: Path) -> Path:
    if path.exists():
        raise FileExistsError(f"{path} is already there: choose another name or remove it")
    return path.with_name(path.name + ".part")


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    part = _part_of(path)
    try:
        with part.open("wb") as file:
            yield file
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)


class FolderWriter:
    """Writes the files of a new folder, one after the other."""

    def __init__(self, part: Path) -> None:
        self._part = part
        self._file: BinaryIO | None = None

    def begin(self, name: str) -> None:
        """`name` came over the network: it must be a plain one."""
        self.end()
        if name in ("", ".", "..") or name != os.path.basename(name) or "\0" in name:
            raise ValueError(f"the daemon sent a file named {name!r}, which isn't a plain name")
        self._file = (self._part / name).open("xb")

    def write(self, data: bytes) -> None:
        if self._file is None:
            raise ValueError("the daemon sent bytes that belong to no file")
        self._file.write(data)

    def end(self) -> None:
        if self._file:
            self._file.close()


@contextmanager
def new_folder(path: Path) -> Iterator[FolderWriter]:
    part = _part_of(path)
    part.mkdir()
    writer = FolderWriter(part)
    try:
        yield writer
        writer.end()
        part.rename(path)
    finally:
        writer.end()
        shutil.rmtree(part, ignore_errors=True)
