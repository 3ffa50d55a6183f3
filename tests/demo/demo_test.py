"""The demo ends well: it trains its adapter, or takes one that was trained elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODEL = Path(os.environ["DOCMEM_SMOLLM2"])


@pytest.mark.skipif(not MODEL.is_dir(), reason=f"needs the model in {MODEL}")
@pytest.mark.parametrize("options", [[], ["--adapter", ROOT / "demo/adapter"]],
                         ids=["trained", "uploaded"])
def test_the_demo_ends_well(tmp_path, options):
    done = subprocess.run(
        [sys.executable, "-B", ROOT / "scripts/demo.py", "--folder", tmp_path, "--model", MODEL,
         "--binaries", os.environ["DOCMEM_BIN_DIR"], *options],
        capture_output=True, text=True, timeout=600)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert re.search(r"documentTokensPrefilled 0, loaded from disk", done.stdout)
