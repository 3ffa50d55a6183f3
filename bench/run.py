#!/usr/bin/env python3
"""Runs the benchmarks of one build and prints a table; see `./dev bench --help`."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def measure(program):
    """The rows of one Google Benchmark program."""
    result = subprocess.run(
        [program, "--benchmark_format=json"], check=True, stdout=subprocess.PIPE, text=True
    )
    return [
        {"name": row["name"], "ours": row["real_time"], "unit": row["time_unit"]}
        for row in json.loads(result.stdout)["benchmarks"]
        if row.get("run_type") == "iteration"
    ]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME",
                        help="programs whose names contain a NAME")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release", help="build folder")
    options = parser.parse_args()

    programs = [
        program for program in sorted((options.build / "bench").glob("*_bench"))
        if any(name in program.name for name in options.only)
    ]
    if not programs:
        sys.exit(f"no benchmark in {options.build / 'bench'} matches {' '.join(options.only)}")
    rows = []
    for program in programs:
        print(f"==> {program.name}", file=sys.stderr, flush=True)
        for row in measure(program):
            rows.append(row)
            print(f"{row['name']:60} {row['ours']:14.1f} {row['unit']}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
