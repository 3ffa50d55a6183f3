"""Replicas that have the same documents, and the routers in front of them."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
WORK = Path(tempfile.mkdtemp(prefix="docmem-fleet-"))
sys.path[:0] = [str(TESTS / "python_client"), str(TESTS / "integration"), str(WORK / "site")]
for variable in ("DOCMEM_ADDRESS", "DOCMEM_TOKEN"):
    os.environ.pop(variable, None)

import package  # noqa: E402

package.install(package.make_wheel(WORK), WORK / "site")

# They import the client that was just installed.
from daemon import scaled  # noqa: E402
from folders import patient_model  # noqa: E402
from replicas import Fleet  # noqa: E402


def pytest_unconfigure():
    shutil.rmtree(WORK)


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.timeout(scaled(120, 900)))


@pytest.fixture(scope="session")
def model():
    """One whose answers don't end before max_tokens."""
    return patient_model(WORK / "models")


@pytest.fixture(scope="session")
def fleet(model):
    """Three of them, with the documents, and addresses for more."""
    fleet = Fleet(WORK / "fleet", model)
    try:
        yield fleet.start(3)
    finally:
        fleet.end()
