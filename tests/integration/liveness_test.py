"""Liveness: true while the engine is busy, false while it hangs."""

import contextlib
import ctypes
import os
import time
from pathlib import Path

import grpc
import pytest
from client import ask_request
from daemon import NOT_SERVING, SERVING, eventually, scaled
from texts import document

WATCHDOG_S = 2
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, thread):
    if libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def held(thread):
    """Stops one thread of a process that this one started; the others go on."""
    ptrace(PTRACE_SEIZE, thread)
    ptrace(PTRACE_INTERRUPT, thread)
    os.waitpid(thread, WALL)
    try:
        yield
    finally:
        ptrace(PTRACE_DETACH, thread)


def engine_thread(daemon):
    tasks = Path(f"/proc/{daemon.process.pid}/task").iterdir()
    return int(next(t.name for t in tasks if (t / "comm").read_text() == "docmem-engine\n"))


@pytest.fixture
def daemon(make_daemon):
    daemon = make_daemon("--watchdog-seconds", WATCHDOG_S).start()
    daemon.client().ingest(document("d"), "d")
    return daemon


def test_a_busy_engine_is_alive_and_says_so_at_once(daemon):
    client = daemon.client()
    streams = [client.queries.Ask(ask_request("d", max_tokens=100_000)) for _ in range(4)]
    slowest = 0.0
    end = time.monotonic() + scaled(2 * WATCHDOG_S, 300)
    while time.monotonic() < end:
        began = time.monotonic()
        assert daemon.liveness() == SERVING
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.1)
    print(f"slowest answer {slowest * 1e3:.0f} ms")
    assert slowest < 1
    for stream in streams:
        stream.cancel()


def test_an_engine_that_hangs_fails_liveness_until_it_goes_on(daemon):
    stream = daemon.client().queries.Ask(ask_request("d", max_tokens=100_000), timeout=60)
    assert next(stream).WhichOneof("part") == "started"

    def hangs():
        # The thread may have been caught outside a step: where it waits for work, or sends a token
        # and holds a lock of gRPC that the health server needs too.
        with held(engine_thread(daemon)), contextlib.suppress(grpc.RpcError):
            until = time.monotonic() + WATCHDOG_S + 2
            while time.monotonic() < until:
                if daemon.liveness(timeout=2) == NOT_SERVING:
                    assert daemon.process.poll() is None
                    return True
                time.sleep(0.1)
        return False

    eventually(hangs, 60)
    eventually(lambda: daemon.liveness() == SERVING)
    assert next(part for part in stream if part.WhichOneof("part") == "delta")
    stream.cancel()
