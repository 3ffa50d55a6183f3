"""Makes the wheel as a user would, but from what .venv has, and installs it into a folder."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
OFFLINE = ["--quiet", "--no-deps", "--no-index"]


def make_wheel(folder):
    """From a copy of the sources: setuptools writes beside them."""
    copy = folder / "project"
    shutil.copytree(ROOT / "client/python", copy / "client/python")
    for name in ("proto", "CMakeLists.txt"):
        (copy / name).symlink_to(ROOT / name)
    command = [*PIP, "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", folder]
    subprocess.run([*command, copy / "client/python"], check=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def install(wheel, folder):
    subprocess.run([*PIP, "install", *OFFLINE, "--target", folder, wheel], check=True)
