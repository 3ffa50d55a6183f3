"""Which failures are tried again, and when: the same decisions as client/internal/retry.cc."""

from __future__ import annotations

import math
import random
import time
from enum import Enum

import grpc

from docmem.errors import DocMemError, UnavailableError
from docmem.options import RetryPolicy


class _Class(Enum):
    REFUSED = 1  # before any work
    INTERRUPTED = 2


# The table of docmem/v1/errors.proto. tests/python_client holds it and the C++ client's together.
_TABLE = {
    (grpc.StatusCode.UNAVAILABLE, "STARTING"): _Class.REFUSED,
    (grpc.StatusCode.UNAVAILABLE, "DRAINING"): _Class.REFUSED,
    (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN"): _Class.INTERRUPTED,
    (grpc.StatusCode.UNAVAILABLE, "REGISTRY_UNAVAILABLE"): _Class.INTERRUPTED,
    (grpc.StatusCode.UNAVAILABLE, "ARTIFACTS_UNAVAILABLE"): _Class.INTERRUPTED,
    (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL"): _Class.REFUSED,
    (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_MAX_IN_FLIGHT"): _Class.REFUSED,
    (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_MAX_QUEUED"): _Class.REFUSED,
}


class Tries:
    """The tries of one call."""

    def __init__(self, policy: RetryPolicy, safe: bool, timeout: float) -> None:
        """`safe`: the call may happen twice without harm. `timeout`: seconds for all tries."""
        self._policy = policy
        self._safe = safe
        self._deadline = time.monotonic() + timeout
        self.attempt = 1

    def left(self) -> float:
        """Seconds until the deadline; inf: there is none."""
        return max(0.0, self._deadline - time.monotonic())

    def delay_after(self, error: DocMemError, delivered: bool) -> float | None:
        """Seconds until the next try; None: there is none. `delivered`: the caller has seen part
        of the result, so trying again would show it twice."""
        delay = self._delay(error)
        if delivered or not self._policy.enabled or delay is None:
            return None
        delay *= 1 + random.uniform(0, self._policy.jitter)
        return delay if delay < self.left() else None

    def _delay(self, error: DocMemError) -> float | None:
        if isinstance(error, UnavailableError) and error.lost:
            again = self._safe and self.attempt < self._policy.max_attempts
            return self._backoff() if again else None
        kind = _TABLE.get((error.code, error.reason))
        if kind is None or (kind is _Class.INTERRUPTED and not self._safe):
            return None
        return self._backoff() if error.retry_delay is None else error.retry_delay

    def _backoff(self) -> float:
        doubled = math.ldexp(self._policy.initial_backoff, min(self.attempt - 1, 30))
        return min(self._policy.max_backoff, doubled)
