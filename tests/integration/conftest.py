import shutil

import pytest
from daemon import BINARIES, LONG, Daemon, scaled
from folders import patient_model


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes minutes; only with ./dev test --long")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(scaled(240, 3600)))
    if not LONG:
        short = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=[item for item in items if item not in short])
        items[:] = short


@pytest.fixture(scope="session", autouse=True)
def programs():
    for name in ("docmemd", "docmem"):
        assert (BINARIES / name).exists(), f"{BINARIES / name} isn't built; set DOCMEM_BIN_DIR"


def _factory(folder):
    made = []

    def make(*options, **more):
        place = more.pop("folder", None) or folder / f"daemon-{len(made)}"
        place.mkdir(parents=True, exist_ok=True)
        made.append(Daemon(place, *options, **more))
        return made[-1]

    yield make
    for daemon in made:
        daemon.end()
    for daemon in made:
        daemon.check_log()


@pytest.fixture
def make_daemon(tmp_path):
    """Makes daemons (not started) of which none outlives the test."""
    yield from _factory(tmp_path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for the whole file, gone at its end."""
    path = tmp_path_factory.mktemp("module")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def patient(folder):
    """tiny-llama, changed so that greedy answers never end before max_tokens."""
    return patient_model(folder / "models")


@pytest.fixture(scope="module")
def make_shared_daemon(folder):
    """As make_daemon, for fixtures that live as long as the file."""
    yield from _factory(folder)


@pytest.fixture(scope="module")
def daemon(make_shared_daemon):
    """One daemon on tiny-llama for all tests of a file; they use documents of their own."""
    return make_shared_daemon().start()


@pytest.fixture(scope="module")
def client(daemon):
    return daemon.client()
