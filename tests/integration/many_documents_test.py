"""Many registered documents: a start reads none of their files, and /metrics stays small."""

import os

import pytest
from client import refused
from daemon import scaled
from texts import document

COUNT = scaled(60, 1000)
EDGE = 64
MOST_METRICS_BYTES = 64 * 1024


@pytest.fixture
def many(make_daemon):
    """A stopped daemon with documents whose stored files are all damaged and were never read."""
    daemon = make_daemon().start()
    client = daemon.client()
    for number in range(COUNT):
        client.ingest(document(number, 1), f"d{number:04}", ratio_ppm=[1_000_000])
    assert daemon.stop() == 0
    files = [path for path in daemon.data.rglob("artifacts/*/*") if path.is_file()]
    assert len(files) >= COUNT
    for path in files:
        stat = path.stat()
        edge = min(EDGE, stat.st_size)
        with path.open("r+b") as file:
            for place in (0, stat.st_size - edge):
                file.seek(place)
                file.write(bytes(edge))
        os.utime(path, (0, stat.st_mtime))
    return daemon, files


def test_a_start_reads_no_stored_file(many):
    daemon, files = many
    client = daemon.start().client()
    assert client.status().documents == COUNT
    assert not [path for path in files if path.stat().st_atime != 0]
    assert len(daemon.metrics_text()) <= MOST_METRICS_BYTES
    refused(lambda: client.ask("d0000"), "DATA_LOSS", "ARTIFACT_DAMAGED")
    assert [path for path in files if path.exists() and path.stat().st_atime != 0]
