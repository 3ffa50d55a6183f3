"""route_figures on the data sets of DOCMEM_DATA: what docs/evaluation.md promises of routing."""

import os
import subprocess
from pathlib import Path

import pytest

FIGURES = os.environ["ROUTE_FIGURES"]
DATA = Path(os.environ.get("DOCMEM_DATA", ""))
SETS = ("xquad_en", "narrativeqa_small", "narrativeqa_stories", "fairytaleqa_valtest")


@pytest.fixture(scope="module")
def tables():
    """First column → the others, of all rows."""
    if any(not (DATA / f"{name}.jsonl").is_file() for name in SETS):
        pytest.skip(f"no data sets in DOCMEM_DATA ({DATA})")
    printed = subprocess.run([FIGURES, DATA], capture_output=True, text=True, check=True).stdout
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in printed.splitlines() if line.startswith("| ")]
    return {name: [float(cell) for cell in cells] for name, *cells in rows if cells[0][0].isdigit()}


@pytest.mark.parametrize("name", SETS)
def test_no_set_is_below_plain_bm25(tables, name):
    *_, plain, first, among_five = tables[name]
    assert plain <= first <= among_five


@pytest.mark.parametrize("name", ["narrativeqa_stories", "fairytaleqa_valtest"])
def test_long_texts_are_found(tables, name):
    assert tables[name][-2] >= 0.86


def test_questions_about_other_documents_are_told_from_own_ones(tables):
    foreign, own = tables["mean"]
    assert foreign >= 0.8 and own <= 0.05


def test_usage_is_told():
    done = subprocess.run([FIGURES], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("usage: ")
