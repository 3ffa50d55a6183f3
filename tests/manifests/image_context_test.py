"""What .dockerignore lets into the image's build is enough for what the Dockerfile does there."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LET_IN = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines()
          if line.startswith("!")]


def copied(folder, let_in):
    """A folder with the named files."""
    source = folder / "source"
    for name in let_in:
        there = ROOT / name
        copy = shutil.copytree if there.is_dir() else shutil.copy2
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        copy(there, source / name)
    return source


def configure(folder, let_in):
    """Configures a copy of the named files as the Dockerfile does."""
    source = copied(folder, let_in)
    (source / ".venv").symlink_to(ROOT / ".venv")
    return subprocess.run(
        ["cmake", "--preset", "release", "-DBUILD_TESTING=OFF"],
        cwd=source, capture_output=True, text=True, timeout=300)


def test_the_image_has_all_that_docmemd_links(tmp_path):
    done = configure(tmp_path, LET_IN)
    assert done.returncode == 0, done.stderr


def test_the_image_has_all_that_makes_its_bill_of_materials(tmp_path):
    done = subprocess.run(
        [sys.executable, "-B", copied(tmp_path, LET_IN) / "scripts/make_sbom.py", "--root",
         tmp_path, "--version", "1"], capture_output=True, text=True, check=False)
    assert done.stderr.startswith("make_sbom.py: no /var/lib/dpkg/status below the root")


@pytest.mark.parametrize("folder", ["training", "engine"])
def test_a_folder_that_is_left_out_fails_by_name(tmp_path, folder):
    done = configure(tmp_path, [name for name in LET_IN if name != folder])
    assert done.returncode != 0
    assert f"docmem_{folder}" in done.stderr
