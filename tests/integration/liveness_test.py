"""Liveness: true while the daemon loads or works, or RPCs block; false while the engine hangs."""

import contextlib
import ctypes
import os
import time
from pathlib import Path

import grpc
import pytest
from client import ask_request, refusal
from daemon import NOT_SERVING, SERVING, TIME_SLACK, eventually, scaled
from stubs import v1
from texts import document

WATCHDOG_S = 2
# Large enough that its load can be held.
REAL_MODEL = Path(os.environ["DOCMEM_SMOLLM2"])
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


def threads(daemon, name):
    found = []
    for task in Path(f"/proc/{daemon.process.pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            if (task / "comm").read_text() == f"{name}\n":
                found.append(int(task.name))
    return found


def stays_alive(daemon, seconds):
    """Liveness is true all the time, and told at once."""
    slowest, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        assert daemon.liveness() == SERVING
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.1)
    print(f"slowest answer {slowest * 1e3:.0f} ms")
    assert slowest < TIME_SLACK


@pytest.fixture
def daemon(make_daemon):
    daemon = make_daemon("--watchdog-seconds", WATCHDOG_S).start()
    daemon.client().ingest(document("d"), "d")
    return daemon


# Fault 74, with the next two.
def test_a_load_that_takes_long_is_alive(make_daemon):
    daemon = make_daemon("--watchdog-seconds", WATCHDOG_S, model=REAL_MODEL).launch()
    with held(daemon.process.pid):  # the main thread, which loads
        stays_alive(daemon, scaled(5, 300))
        assert daemon.readiness() == NOT_SERVING
    daemon.wait_until_ready()


def test_a_daemon_with_blocked_threads_is_alive(daemon):
    with contextlib.ExitStack() as stack:
        one, *others = threads(daemon, "docmem-worker")  # where RPCs run
        stack.enter_context(held(one))
        stays_alive(daemon, scaled(5, 300))
        for thread in others:
            stack.enter_context(held(thread))
        why = refusal(lambda: daemon.client().admin.GetStatus(v1.GetStatusRequest(), timeout=2))
        assert why.code == grpc.StatusCode.DEADLINE_EXCEEDED
        stays_alive(daemon, 1)
    assert daemon.client().ask("d").finished


def test_a_busy_engine_is_alive_and_says_so_at_once(daemon):
    client = daemon.client()
    streams = [client.queries.Ask(ask_request("d", max_tokens=100_000)) for _ in range(4)]
    stays_alive(daemon, scaled(2 * WATCHDOG_S, 300))
    for stream in streams:
        stream.cancel()


def test_an_engine_that_hangs_fails_liveness_until_it_goes_on(daemon):
    stream = daemon.client().queries.Ask(ask_request("d", max_tokens=100_000), timeout=60)
    assert next(stream).WhichOneof("part") == "started"

    def hangs():
        # The thread may have been caught outside a step: where it waits for work, or sends a token
        # and holds a lock of gRPC that the health server needs too.
        with held(*threads(daemon, "docmem-engine")), contextlib.suppress(grpc.RpcError):
            until = time.monotonic() + WATCHDOG_S + TIME_SLACK
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
