"""One way to write a test for both clients.

`form(address, …).do(function)` hands a client to `function` and gives what it returned: an
awaitable's result, an iterator's items as a list.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator

import docmem


class Blocking:
    def __init__(self, *args, **options):
        self._client = docmem.Client(*args, **options)

    def do(self, function):
        result = function(self._client)
        return list(result) if isinstance(result, Iterator) else result

    def close(self):
        self._client.close()


class Asyncio:
    def __init__(self, *args, **options):
        self._client = docmem.AsyncClient(*args, **options)
        self._runner = asyncio.Runner()

    def do(self, function):
        return self._runner.run(self._do(function))

    async def _do(self, function):
        result = function(self._client)
        if isinstance(result, AsyncIterator):
            return [item async for item in result]
        return await result if inspect.isawaitable(result) else result

    def close(self):
        self._runner.run(self._client.close())
        self._runner.close()
