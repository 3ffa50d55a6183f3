"""A folder read as if it were the root of the file system, as the programs in it would see it."""

import contextlib
import os
import stat

MAX_LINKS = 40  # as the kernel has it


class SbomError(Exception):
    """A failure that is told to the user in one line."""


class Root:
    """Paths are relative to the root. No link leads out of it: an absolute one starts at the root,
    and nothing is above the root."""

    def __init__(self, folder):
        self._folder = os.fspath(folder)
        if not os.path.isdir(self._folder):
            raise SbomError(f"{self._folder} is no folder")

    def resolve(self, path):
        """The place of `path` with no link in it, or None where nothing is."""
        done, ahead, links = [], path.split("/")[::-1], 0
        while ahead:
            name = ahead.pop()
            if name in ("", "."):
                continue
            if name == "..":
                done = done[:-1]
                continue
            here = os.path.join(self._folder, *done, name)
            try:
                is_link = stat.S_ISLNK(os.lstat(here).st_mode)
            except (FileNotFoundError, NotADirectoryError):
                return None
            if not is_link:
                done.append(name)
                continue
            links += 1
            if links > MAX_LINKS:
                return None
            target = os.readlink(here)
            if target.startswith("/"):
                done = []
            ahead.extend(target.split("/")[::-1])
        return "/".join(done)

    def names(self, path):
        """What a folder holds, in order; nothing where it is none."""
        place = self.resolve(path)
        if place is None or not os.path.isdir(self._outside(place)):
            return []
        return sorted(os.listdir(self._outside(place)))

    @contextlib.contextmanager
    def open(self, path):
        """A regular file to read, or None: a pipe would wait for ever, a device needn't end."""
        place = self.resolve(path)
        if place is None or not stat.S_ISREG(os.lstat(self._outside(place)).st_mode):
            yield None
            return
        with open(self._outside(place), "rb") as file:
            yield file

    def text(self, path, max_bytes=1 << 26):
        """A file's text, or None where there is none. What isn't UTF-8 is replaced."""
        with self.open(path) as file:
            if file is None:
                return None
            data = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise SbomError(f"/{path} has more than {max_bytes} bytes")
        return data.decode("utf-8", "replace")

    def _outside(self, place):
        return os.path.join(self._folder, place)
