#!/usr/bin/env python3
"""Runs a preset of eval/presets: docmem-eval for each of its runs, then scores and plots."""

import argparse
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(__file__).resolve().parent
PRESETS = FOLDER / "presets"
OWN_KEYS = {"name", "model", "data"}


def option(key, value):
    """A key of a preset as arguments of docmem-eval."""
    flag = "--" + key.replace("_", "-")
    if value is True:
        return [flag]
    if isinstance(value, list):
        return [flag, ",".join(str(item) for item in value)]
    return [flag, str(value)]


def commands(preset, program, models, data, output):
    """(name of a run, model folder, data file, command) of each run of a preset."""
    for run in preset["runs"]:
        settings = preset.get("options", {}) | {
            key: value for key, value in run.items() if key not in OWN_KEYS}
        model, data_set = models / run["model"], data / run["data"]
        command = [str(program), "--model", str(model), "--data", str(data_set),
                   "--output", str(output / run["name"])]
        for key, value in settings.items():
            command += option(key, value)
        yield run["name"], model, data_set, command


def missing(runs):
    """What has to be there before anything is started."""
    for _, model, data, _ in runs:
        if not (model / "config.json").is_file():
            yield f"no model in {model}: put a Hugging Face folder there, or name --models"
        if not data.is_file():
            yield (f"no data in {data}: set DOCMEM_DATA or --data to a folder that has it "
                   "(docs/evaluation.md tells how to get it)")


def main():
    parser = argparse.ArgumentParser(prog="./dev eval", description=__doc__)
    parser.add_argument("--preset", default="small",
                        choices=sorted(path.stem for path in PRESETS.glob("*.toml")))
    parser.add_argument("--models", type=Path, default=ROOT / "build/models", metavar="FOLDER",
                        help="folder of model folders (%(default)s)")
    parser.add_argument("--data", type=Path, metavar="FOLDER",
                        default=Path(os.environ.get("DOCMEM_DATA", ROOT / "../shared/data")),
                        help="folder of data sets (DOCMEM_DATA, else ../shared/data)")
    parser.add_argument("--output", type=Path, metavar="FOLDER",
                        help="default: build/eval/PRESET")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/bin/docmem-eval",
                        metavar="FILE", help="docmem-eval (%(default)s)")
    parser.add_argument("--only", metavar="RUN", help="one of the preset's runs")
    parser.add_argument("--print", action="store_true", help="print the commands, run nothing")
    options = parser.parse_args()
    output = options.output or ROOT / "build/eval" / options.preset
    preset = tomllib.loads((PRESETS / f"{options.preset}.toml").read_text(encoding="utf-8"))
    runs = list(commands(preset, options.program, options.models, options.data, output))
    if options.only:
        runs = [entry for entry in runs if entry[0] == options.only]
        if not runs:
            sys.exit(f"preset {options.preset} has no run {options.only}")
    if options.print:
        for *_, command in runs:
            print(shlex.join(command))
        return
    if problems := list(dict.fromkeys(missing(runs))):
        sys.exit("\n".join(problems))
    for name, _, _, command in runs:
        print(f"==> {name}", flush=True)
        if code := subprocess.run(command, check=False).returncode:
            sys.exit(code)
    predictions = [str(output / name / "predictions.jsonl") for name, *_ in runs]
    for script in ([FOLDER / "score.py", *predictions, "--output", output],
                   [FOLDER / "plot.py", output / "scores.json"]):
        if subprocess.run([sys.executable, *map(str, script)], check=False).returncode:
            sys.exit(f"{Path(script[0]).name} failed")


if __name__ == "__main__":
    main()
