"""The direction of dependencies of docs/architecture.md, as data and a checker of #include lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Folder -> project folders it may include besides itself.
FOLDERS = {
    "proto": [],
    "engine": [],
    "adapter_store": [],
    "training": ["engine"],
    "client": [],
    "server": ["engine", "adapter_store", "training"],
    "eval": ["engine", "training"],
    "bench": ["engine", "training", "adapter_store", "client"],
    "tests": ["engine", "training", "adapter_store", "client", "server", "eval"],
}

# Inside a folder: a part may include the parts before it. A part is a subfolder, or a set of the
# folder's own files, "" being all those not named by another part.
PARTS = {
    "engine": ["formats", "text", "kernels", "model", "compression", "sampling", "artifacts", ""],
    "adapter_store": ["base", "files", "lexical", "registry", "resident", ""],
    "server": ["errors", "telemetry", "runtime", "ingest", "query", "jobs", "interceptors",
               "services", ""],
}
NAMED_FILES = {
    "adapter_store": {
        "base": ["artifact_writer", "errors", "status_macros", "sync", "types"],
        "resident": ["resident", "unload_policy"],
    },
}
# Parts that use less than what stands before them.
NARROWER = {("adapter_store", "resident"): ["base"]}

# Folder -> outside headers it must not see, as the beginning of the included path.
TORCH = ("torch/", "ATen/", "c10/", "caffe2/")
GRPC = ("grpc/", "grpc++/", "grpcpp/", "google/protobuf/")
SERVICE = ("absl/", "spdlog/", "fmt/", "prometheus/", "CLI/", "toml++/")
SQL = ("sqlite3.h", "libpq-fe.h")
FORBIDDEN = {
    "engine": GRPC + SERVICE + SQL,
    "adapter_store": GRPC + TORCH,
    "training": GRPC + SQL,
    "client": TORCH + SQL,
    "server": SQL,
    "eval": GRPC + SQL,
}

# Generated headers -> where they may be included, as the beginning of the including file's path.
MESSAGE_USERS = {
    "google/rpc/": ("server/services/", "server/errors/", "client/", "tests/"),
    "docmem/v1/errors.pb.h": ("server/services/", "server/errors/", "client/", "tests/"),
    "": ("server/services/", "client/", "tests/"),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)


@dataclass(frozen=True)
class Include:
    file: str  # from the project's root
    path: str  # as written
    quoted: bool


def source_files(root: Path) -> list[Path]:
    return sorted(
        path
        for folder in FOLDERS
        for suffix in ("*.h", "*.cc")
        for path in (root / folder).rglob(suffix)
    )


def includes(root: Path) -> Iterator[Include]:
    for path in source_files(root):
        for bracket, name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            yield Include(path.relative_to(root).as_posix(), name, bracket == '"')


def part_of(file: str) -> str:
    """The part of its folder that a file belongs to."""
    folder, _, rest = file.partition("/")
    if "/" in rest:
        return rest.split("/")[0]
    stem = rest.rsplit(".", 1)[0]
    for part, stems in NAMED_FILES.get(folder, {}).items():
        if any(stem == name or stem.startswith(name + "_") for name in stems):
            return part
    return ""


def is_test(file: str) -> bool:
    return file.rsplit(".", 1)[0].endswith(("_test", "_fuzz", "_bench"))


def is_test_support(file: str) -> bool:
    """Shared by tests, included by nothing else; may itself see its whole folder."""
    name = file.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    return "/testing/" in file or name == "testing" or name.endswith(("_test_util", "_fixture"))


def allowed_parts(folder: str, part: str) -> list[str]:
    order = PARTS[folder]
    return [part] + NARROWER.get((folder, part), order[: order.index(part)])


def complaint(root: Path, include: Include) -> str | None:
    """Why the include breaks the layers, or None."""
    source, target = include.file.split("/")[0], include.path.split("/")[0]
    if include.path.endswith(".pb.h"):
        prefix = next(p for p in MESSAGE_USERS if include.path.startswith(p))
        users = MESSAGE_USERS[prefix]
        return None if include.file.startswith(users) else f"only {', '.join(users)} see messages"
    if include.path.startswith(FORBIDDEN.get(source, ())):
        return f"{source}/ must not see it"
    if target not in FOLDERS:
        return None
    if not include.quoted:
        return "the project's own headers are included in quotes"
    if not (root / include.path).is_file():
        return "there is no such header (paths start at the project's root)"
    if source != target:
        if target in FOLDERS[source]:
            return None
        return f"{source}/ may include only {', '.join(FOLDERS[source]) or 'itself'}"
    if source not in PARTS:
        return None
    if is_test_support(include.path):
        fits = is_test(include.file) or is_test_support(include.file)
        return None if fits else "only tests include test support"
    if is_test_support(include.file):
        return None
    part, other = part_of(include.file), part_of(include.path)
    for name in (part, other):
        if name not in PARTS[source]:
            return f"{source}/{name} has no place in the order: add it to the architecture first"
    if other in allowed_parts(source, part):
        return None
    return f"{source}/{part} may include only {', '.join(allowed_parts(source, part))}"


def complaints(root: Path) -> list[str]:
    return [
        f"{include.file} includes {include.path}: {why}"
        for include in includes(root)
        if (why := complaint(root, include))
    ]


def cycles(root: Path) -> list[str]:
    """Headers that include each other in a ring, each ring once, as 'a -> b -> a'."""
    graph: dict[str, list[str]] = {}
    for include in includes(root):
        if include.file.endswith(".h") and (root / include.path).is_file():
            graph.setdefault(include.file, []).append(include.path)
    found: list[str] = []
    done: set[str] = set()

    def visit(file: str, trail: list[str]) -> None:
        if file in trail:
            found.append(" -> ".join(trail[trail.index(file):] + [file]))
            return
        if file in done:
            return
        for target in graph.get(file, []):
            visit(target, trail + [file])
        done.add(file)

    for file in sorted(graph):
        visit(file, [])
    return found
