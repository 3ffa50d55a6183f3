"""Sizes and shares that the project holds itself to, as a report: it judges nothing by itself."""

import re
import sys
from pathlib import Path

from layering import is_test, is_test_support, source_files

LIMITS = [  # (pattern of the path, lines); the first match counts
    (r"^CMakeLists\.txt$", 120),
    (r"/CMakeLists\.txt$", 60),
    (r"/main\.cc$", 100),
    (r"^server/services/.*\.cc$", 300),
    (r"\.h$", 200),
    (r"\.cc$", 400),
]


def limit_of(file: str) -> int | None:
    return next((lines for pattern, lines in LIMITS if re.search(pattern, file)), None)


def count(path: Path) -> tuple[int, int]:
    """Lines that aren't blank, and those of them that are comments."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return len([line for line in lines if line]), len([x for x in lines if x.startswith("//")])


def too_long(root: Path) -> list[str]:
    files = source_files(root)
    files += [p for p in root.glob("**/CMakeLists.txt") if "build" not in p.parts]
    result = []
    for path in files:
        name = path.relative_to(root).as_posix()
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if (limit := limit_of(name)) and lines > limit:
            result.append(f"{name}: {lines} lines, aim at {limit}")
    return result


def report(root: Path) -> str:
    totals = {"headers": [0, 0], "sources": [0, 0], "tests": [0, 0]}
    for path in source_files(root):
        name = path.relative_to(root).as_posix()
        test = is_test(name) or is_test_support(name) or name.startswith("tests/")
        kind = "tests" if test else "headers" if path.suffix == ".h" else "sources"
        lines, comments = count(path)
        totals[kind][0] += lines
        totals[kind][1] += comments
    for path in (root / "tests").rglob("*.py"):
        totals["tests"][0] += count(path)[0]
    rows = [
        f"{kind}: {lines} lines, {100 * comments / max(lines, 1):.0f} % comments"
        for kind, (lines, comments) in totals.items()
    ]
    production = totals["headers"][0] + totals["sources"][0]
    rows.append(f"test to production: {totals['tests'][0] / max(production, 1):.2f}")
    return "\n".join(rows + too_long(root))


if __name__ == "__main__":
    print(report(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
