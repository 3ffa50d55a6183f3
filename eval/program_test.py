"""docmem-eval as a process: what it refuses, what it leaves behind when it is ended."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

PROGRAM = os.environ["DOCMEM_EVAL"]
MODEL = Path(__file__).resolve().parent.parent / "tests/reference/models/tiny-llama"
KILLS = 5


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          check=False, **options)


def write_data(path):
    records = [{"id": f"d{number}", "text": f"Ship {number} sailed in 19{number}0. " * 6,
                "qas": [{"question": f"When did ship {word} sail?", "answers": ["in time"]}
                        for word in ("one", "two", "three")]} for number in (1, 2)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def command(data, output):
    return [PROGRAM, "--model", str(MODEL), "--dtype", "float32", "--threads", "1",
            "--data", str(data), "--output", str(output), "--ratios", "0,0.5,1",
            "--supervisions", "SYNTHETIC_QA,RAW_CONTEXT", "--seen-part", "0.5",
            "--max-tokens", "4", "--epochs", "40", "--rank", "2", "--checkpoint-seconds", "0.1"]


def predictions(output):
    return (output / "predictions.jsonl").read_bytes()


@pytest.fixture(name="data")
def data_set(tmp_path):
    return write_data(tmp_path / "data.jsonl")


def test_wrong_options_and_files_are_told_in_one_line(data, tmp_path):
    for arguments, code, told in [
            (["--model", "x"], 2, "--data"),
            (command(data, tmp_path)[1:] + ["--modes", "SIDEWAYS"], 2, "'SIDEWAYS'"),
            (command(data, tmp_path)[1:] + ["--ratios", "1.5"], 2, "1.5"),
            (command(tmp_path / "absent", tmp_path)[1:], 1, "absent"),
    ]:
        ended = run(*arguments)
        assert ended.returncode == code
        assert told in ended.stderr
        assert ended.stderr.startswith("docmem-eval: ")
        assert ended.stderr.count("\n") == 1
    assert run("--help").stdout.startswith("docmem-eval answers")


def test_killed_or_stopped_it_goes_on_to_the_same_bytes(data, tmp_path):
    whole = tmp_path / "whole"
    ended = run(*command(data, whole)[1:])
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"{2 * 3 * (3 + 2 * 3 * 3)} predictions in {whole}/predictions.jsonl\n"
    parts, codes = tmp_path / "parts", []
    for number in range(KILLS):
        process = subprocess.Popen(command(data, parts), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=0.4 + 0.1 * number)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL if number % 2 else signal.SIGTERM)
        codes.append(process.wait())
    assert {130, -signal.SIGKILL} & set(codes)
    ended = run(*command(data, parts)[1:])
    assert ended.returncode == 0, ended.stderr
    assert predictions(parts) == predictions(whole)
