"""QueryService as both clients have it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from docmem import v1
from docmem._core import QUESTION_S, Call, Core, document_header
from docmem._operation import Operation, unary
from docmem._requests import Selection, memory, prompt
from docmem.answer import AskOperation
from docmem.progress import ProgressFunction


class Queries:
    @AskOperation
    def ask(
        document: str,
        question: str,
        *,
        instruction: str = "",
        history: Iterable[tuple[str, str]] = (),
        max_tokens: int = 0,
        sampling: v1.Sampling | None = None,
        stop: Iterable[str] = (),
        log_probabilities: bool = False,
        request_id: str = "",
        priority: v1.Priority | None = None,
        progress: ProgressFunction | None = None,
        **selection: Unpack[Selection],
    ) -> tuple[v1.AskRequest, ProgressFunction | None]:
        """Asks; the answer comes piece by piece. Tried again only before its first piece. See
        AskRequest for what is left out here; `history` has earlier questions with their answers."""
        return (
            v1.AskRequest(
                memory=memory(document, selection),
                prompt=prompt(question, instruction, history),
                max_tokens=max_tokens,
                sampling=sampling,
                stop=stop,
                log_probabilities=log_probabilities,
                request_id=request_id,
                priority=priority,
            ),
            progress,
        )

    @Operation
    async def score(
        core: Core,
        /,
        document: str,
        question: str,
        answer: str,
        *,
        instruction: str = "",
        history: Iterable[tuple[str, str]] = (),
        request_id: str = "",
        priority: v1.Priority | None = None,
        **selection: Unpack[Selection],
    ) -> v1.ScoreResponse:
        """Log-probabilities of a given answer."""
        request = v1.ScoreRequest(
            memory=memory(document, selection),
            prompt=prompt(question, instruction, history),
            answer=answer,
            request_id=request_id,
            priority=priority,
        )
        header = document_header(request.memory.collection, document)
        call = Call("Query.Score", safe=True, timeout=QUESTION_S, document=header)
        response: v1.ScoreResponse = await core.unary(call, request)
        return response

    abort = unary("Query.Abort", v1.AbortRequest, v1.AbortResponse, safe=True)
    route = unary("Query.Route", v1.RouteRequest, v1.RouteResponse, safe=True)
