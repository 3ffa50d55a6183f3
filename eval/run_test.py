"""Presets become commands; what is missing is said before anything starts."""

import tomllib
from pathlib import Path

import pytest
import run

PRESET = {"options": {"ratios": [0, 0.5], "recompute": True, "max_tokens": 32},
          "runs": [{"name": "one", "model": "m", "data": "d.jsonl", "max_tokens": 8},
                   {"name": "two", "model": "m", "data": "d.jsonl"}]}


def commands(tmp_path, preset=None):
    return list(run.commands(preset or PRESET, Path("docmem-eval"), tmp_path / "models",
                             tmp_path / "data", tmp_path / "out"))


def test_a_runs_own_settings_go_over_the_presets(tmp_path):
    [(name, *_, first), (*_, second)] = commands(tmp_path)
    assert name == "one"
    assert first[:7] == ["docmem-eval", "--model", str(tmp_path / "models/m"), "--data",
                         str(tmp_path / "data/d.jsonl"), "--output", str(tmp_path / "out/one")]
    assert first[7:] == ["--ratios", "0,0.5", "--recompute", "--max-tokens", "8"]
    assert second[7:] == ["--ratios", "0,0.5", "--recompute", "--max-tokens", "32"]


def test_what_is_missing_is_named(tmp_path):
    problems = list(run.missing(commands(tmp_path)))
    assert any("no model in" in problem for problem in problems)
    assert any("DOCMEM_DATA" in problem for problem in problems)
    (tmp_path / "models/m").mkdir(parents=True)
    (tmp_path / "models/m/config.json").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/d.jsonl").touch()
    assert list(run.missing(commands(tmp_path))) == []


@pytest.mark.parametrize("path", sorted(run.PRESETS.glob("*.toml")), ids=lambda path: path.stem)
def test_a_preset_has_what_every_run_needs(path, tmp_path):
    preset = tomllib.loads(path.read_text(encoding="utf-8"))
    names = [name for name, *_ in commands(tmp_path, preset)]
    assert names
    assert len(set(names)) == len(names)
