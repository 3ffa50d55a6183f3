"""Methods declared once for both clients.

An operation is a coroutine function whose first argument is a Core; the others, and only they, are
the method's arguments. Read from a blocking client it is a function that returns the result, from
an asyncio client one that returns an awaitable; type checkers see the same.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from google.protobuf.message import Message

from docmem._core import SHORT_S, Call, Core
from docmem._transport import drive

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Blocking:
    """What has the operations of a blocking client."""

    def __init__(self, core: Core) -> None:
        self._core = core


class Awaiting:
    """What has the operations of an asyncio client."""

    def __init__(self, core: Core) -> None:
        self._core = core


class BlockingStream(Iterator[T]):
    """`close` ends the call early."""

    def __init__(self, source: AsyncGenerator[T, None]) -> None:
        self._source = source

    def __next__(self) -> T:
        try:
            return drive(self._source.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        drive(self._source.aclose())


class Operation(Generic[P, R]):
    """As a decorator: makes a method of a coroutine function."""

    def __init__(self, work: Callable[Concatenate[Core, P], Coroutine[Any, Any, R]]) -> None:
        self._work = work

    @overload
    def __get__(self, owner: Blocking, kind: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, owner: Awaiting, kind: type) -> Callable[P, Awaitable[R]]: ...
    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    def __get__(self, owner: Blocking | Awaiting | None, kind: type) -> Any:
        if owner is None:
            return self
        bound = partial(self._work, owner._core)
        return named(bound, self._work, drive if isinstance(owner, Blocking) else None)


class StreamOperation(Generic[P, T]):
    """The same for an asynchronous generator: an iterator of the one or the other kind."""

    def __init__(self, work: Callable[Concatenate[Core, P], AsyncGenerator[T, None]]) -> None:
        self._work = work

    @overload
    def __get__(self, owner: Blocking, kind: type) -> Callable[P, BlockingStream[T]]: ...
    @overload
    def __get__(self, owner: Awaiting, kind: type) -> Callable[P, AsyncGenerator[T, None]]: ...
    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    def __get__(self, owner: Blocking | Awaiting | None, kind: type) -> Any:
        if owner is None:
            return self
        bound = partial(self._work, owner._core)
        return named(bound, self._work, BlockingStream if isinstance(owner, Blocking) else None)


def named(
    bound: Callable[..., Any], work: Any, finish: Callable[[Any], Any] | None = None
) -> Callable[..., Any]:
    """`bound`, its result handed to `finish`, with the name, text and arguments for help()."""

    def call(*args: Any, **kwargs: Any) -> Any:
        result = bound(*args, **kwargs)
        return finish(result) if finish else result

    call.__name__, call.__doc__ = work.__name__, work.__doc__
    arguments = inspect.signature(bound).replace(return_annotation=inspect.Signature.empty)
    call.__signature__ = arguments  # type: ignore[attr-defined]
    return call


def unary(
    method: str,
    request: Callable[P, Message],
    reply: type[R],
    *,
    safe: bool | Callable[[Any], bool] = False,
    timeout: float | Callable[[Any], float] = SHORT_S,
    document: Callable[[Any], str] | None = None,
) -> Operation[P, R]:
    """An operation that takes the fields of its request as arguments. What depends on the request
    is given as a function of it."""

    async def work(core: Core, /, *args: P.args, **kwargs: P.kwargs) -> R:
        message = request(*args, **kwargs)
        call = Call(
            method,
            safe(message) if callable(safe) else safe,
            timeout(message) if callable(timeout) else timeout,
            document(message) if document else "",
        )
        answer: R = await core.unary(call, message)
        return answer

    work.__name__ = method
    work.__doc__ = f"{method} of docmem.v1; takes the fields of {request.__name__}."
    return Operation(work)


def paged(
    method: str,
    request: Callable[P, Message],
    field: str,
    item: type[T],
    *,
    document: Callable[[Any], str] | None = None,
) -> StreamOperation[P, T]:
    """An operation that takes the fields of a list request and gives the items of all pages."""

    async def work(core: Core, /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        message: Any = request(*args, **kwargs)
        call = Call(method, safe=True, document=document(message) if document else "")
        while True:
            page = await core.unary(call, message)
            for entry in getattr(page, field):
                yield entry
            if not page.next_page_token:
                return
            message.page_token = page.next_page_token

    work.__name__ = method
    work.__doc__ = f"{method} of docmem.v1, all pages; takes the fields of {request.__name__}."
    return StreamOperation(work)
