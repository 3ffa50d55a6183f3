"""Answers as they come."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Generic, ParamSpec, Self, overload

from docmem import v1
from docmem._core import QUESTION_S, Call, Core, document_header
from docmem._operation import Awaiting, Blocking, named
from docmem._transport import Stop, drive
from docmem.errors import CancelledError
from docmem.progress import Progress, ProgressFunction, phase_name

P = ParamSpec("P")


class Asked:
    """What has come so far. An answer stands only when `finished` is set; on failure its text
    stands for nothing."""

    def __init__(
        self, core: Core, request: v1.AskRequest, progress: ProgressFunction | None = None
    ) -> None:
        self.started: v1.Started | None = None
        self.text = ""
        self.log_probabilities: list[v1.TokenLogProbability] = []
        """Empty unless asked for."""
        self.finished: v1.Finished | None = None
        self._request = request
        self._named = bool(request.request_id)
        self._progress = progress
        self._stop = Stop()
        memory = request.memory
        header = document_header(memory.collection, memory.document)
        self._parts = core.stream(
            Call("Query.Ask", safe=True, timeout=QUESTION_S, document=header),
            request,
            last=lambda part: part.HasField("finished"),
            delivers=lambda part: part.HasField("delta"),
            stop=self._stop,
            before_try=self._name,
        )

    @property
    def request_id(self) -> str:
        """For `abort`, from any client of the same principal; known once the call has begun."""
        return self._request.request_id

    def cancel(self) -> None:
        """Ends the call, from any thread: the reader gets CancelledError."""
        self._stop.request()

    def _name(self) -> None:
        # A new one for each try: the daemon may not have noticed yet that the last one is lost, and
        # refuses an id that is in use.
        if not self._named:
            self._request.request_id = uuid.uuid4().hex

    def _whole(self) -> str:
        if self.finished is None:
            raise CancelledError("the call ended before its answer was whole")
        return self.text

    async def _next(self) -> str:
        async for part in self._parts:
            if part.HasField("delta"):
                self.text += part.delta.text
                self.log_probabilities.extend(part.delta.log_probabilities)
                return str(part.delta.text)
            if part.HasField("started"):
                self.started = part.started
            elif part.HasField("finished"):
                self.finished = part.finished
            elif self._progress:
                name = phase_name(v1.Progress.Phase, part.progress.phase)
                self._progress(Progress(name, None))
        raise StopAsyncIteration


class Answer(Asked, Iterator[str]):
    """Iterates over the pieces of the answer's text. Leaving its `with` ends the call."""

    def __next__(self) -> str:
        try:
            return drive(self._next())
        except StopAsyncIteration:
            raise StopIteration from None

    def read(self) -> str:
        """The whole text, when it is finished."""
        for _ in self:
            pass
        return self._whole()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        drive(self._parts.aclose())


class AsyncAnswer(Asked, AsyncIterator[str]):
    """As Answer, for asyncio."""

    async def __anext__(self) -> str:
        return await self._next()

    async def read(self) -> str:
        """The whole text, when it is finished."""
        async for _ in self:
            pass
        return self._whole()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._parts.aclose()


class AskOperation(Generic[P]):
    """An operation (see _operation.py) whose result is an answer; as a decorator of the function
    that makes the request."""

    def __init__(self, ask: Callable[P, tuple[v1.AskRequest, ProgressFunction | None]]) -> None:
        self._ask = ask

    @overload
    def __get__(self, owner: Blocking, kind: type) -> Callable[P, Answer]: ...
    @overload
    def __get__(self, owner: Awaiting, kind: type) -> Callable[P, AsyncAnswer]: ...
    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    def __get__(self, owner: Blocking | Awaiting | None, kind: type) -> Any:
        if owner is None:
            return self
        core = owner._core
        answer = Answer if isinstance(owner, Blocking) else AsyncAnswer
        return named(self._ask, self._ask, lambda asked: answer(core, *asked))
