"""Every test sees the package as its wheel brings it."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import package
import pytest

WORK = Path(tempfile.mkdtemp(prefix="docmem-python-client-"))
SITE = WORK / "site"
WHEEL = package.make_wheel(WORK)
package.install(WHEEL, SITE)
sys.path[:0] = [str(SITE), str(package.ROOT / "tests/integration")]
for variable in ("DOCMEM_ADDRESS", "DOCMEM_TOKEN"):
    os.environ.pop(variable, None)

# They import the package.
from both import Asyncio, Blocking  # noqa: E402
from daemon import Daemon  # noqa: E402
from fake_daemon import FakeDaemon  # noqa: E402
from folders import patient_model  # noqa: E402


def pytest_unconfigure():
    shutil.rmtree(WORK)


def pytest_collection_modifyitems(items):
    for item in items:
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(120))


@pytest.fixture(scope="session")
def wheel():
    return WHEEL


@pytest.fixture(scope="session")
def site():
    """The folder into which the wheel was installed."""
    return SITE


@pytest.fixture(params=[Blocking, Asyncio])
def form(request):
    """Makes clients of either form; see both.py."""
    made = []

    def make(*args, **options):
        made.append(request.param(*args, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def fake():
    with FakeDaemon() as fake:
        yield fake


@pytest.fixture(scope="session")
def daemon(tmp_path_factory):
    """The real one, on a tiny model whose answers don't end by themselves."""
    folder = tmp_path_factory.mktemp("daemon")
    daemon = Daemon(folder, model=patient_model(folder / "models"))
    try:
        yield daemon.start()
    finally:
        daemon.end()
