"""DocumentService as both clients have it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docmem import v1
from docmem._chunks import Receiver, Sender, file_pieces, is_chunk, is_end, pieces
from docmem._core import LONG_S, SHORT_S, Call, Core, document_header
from docmem._files import new_file
from docmem._operation import Operation, paged, unary
from docmem._requests import allows_missing, has_no_revision, header_of, header_of_only, ppms
from docmem.progress import Progress, ProgressFunction, phase_name

_DERIVED_ID_DIGITS = 32


class Documents:
    @Operation
    async def ingest(
        core: Core,
        /,
        text: str | bytes,
        document: str = "",
        *,
        collection: str = "",
        ratios: Sequence[float] = (),
        profiles: Sequence[v1.Profile] = (),
        kv_dtype: v1.KvDtype | None = None,
        system_text: str | None = None,
        title: str = "",
        labels: Mapping[str, str] | None = None,
        pin: bool = False,
        retain_text: bool | None = None,
        train_after: v1.TrainingOptions | None = None,
        replace_revision: int | None = None,
        detach: bool = False,
        progress: ProgressFunction | None = None,
    ) -> v1.IngestResult:
        """Reads a text, UTF-8 where it is bytes, into the daemon and builds its caches; see
        IngestOptions. `document`: its id; empty: the first 32 digits of the text's SHA-256.
        `replace_revision`: overwrite the text that this id has in that revision. Tried again over a
        lost connection unless it replaces."""
        data = text.encode() if isinstance(text, str) else text
        options = v1.IngestOptions(
            ratio_ppm=ppms(ratios),
            profiles=profiles,
            kv_dtype=kv_dtype,
            system_text=system_text,
            title=title,
            labels=labels,
            pin=pin,
            retain_text=retain_text,
            train_after=train_after,
        )
        header = v1.IngestHeader(
            collection=collection,
            document=document,
            options=options,
            replace=replace_revision is not None,
            revision=replace_revision,
            detach=detach,
        )

        async def messages() -> AsyncGenerator[v1.IngestRequest, None]:
            sender = Sender(v1.IngestRequest, len(data), progress)
            yield v1.IngestRequest(header=header)
            for piece in pieces(data):
                yield sender.chunk(piece)
            yield sender.end()

        call = Call(
            "Document.Ingest",
            safe=replace_revision is None,
            timeout=LONG_S,
            document=document_header(collection, document or _derived_id(data)),
        )
        result: v1.IngestResult = await _built(core, call, messages, progress)
        return result

    @Operation
    async def build_cache(
        core: Core,
        /,
        document: str,
        *,
        collection: str = "",
        ratios: Sequence[float] = (),
        profiles: Sequence[v1.Profile] = (),
        kv_dtype: v1.KvDtype | None = None,
        system_text: str | None = None,
        mode: v1.Mode | None = None,
        adapter_version: int = 0,
        progress: ProgressFunction | None = None,
    ) -> v1.BuildCacheResult:
        """Builds caches from the retained text; what exists already costs nothing."""
        request = v1.BuildCacheRequest(
            collection=collection,
            document=document,
            ratio_ppm=ppms(ratios),
            profiles=profiles,
            kv_dtype=kv_dtype,
            system_text=system_text,
            mode=mode,
            adapter_version=adapter_version,
        )
        call = Call("Document.BuildCache", True, LONG_S, header_of(request))
        result: v1.BuildCacheResult = await _built(core, call, request, progress)
        return result

    get = unary("Document.Get", v1.GetDocumentRequest, v1.Document, safe=True, document=header_of)
    batch_get = unary(
        "Document.BatchGet", v1.BatchGetDocumentsRequest, v1.BatchGetDocumentsResponse, safe=True
    )
    list = paged("Document.List", v1.ListDocumentsRequest, "documents", v1.Document)
    update = unary(
        "Document.Update",
        v1.UpdateDocumentRequest,
        v1.Document,
        safe=has_no_revision,
        document=header_of,
    )
    delete = unary(
        "Document.Delete",
        v1.DeleteDocumentRequest,
        v1.DeleteDocumentResponse,
        safe=allows_missing,
        document=header_of,
    )
    prefetch = unary(
        "Document.Prefetch",
        v1.PrefetchRequest,
        v1.PrefetchResponse,
        safe=True,
        timeout=lambda request: LONG_S if request.wait else SHORT_S,
        document=header_of_only,
    )
    delete_cache = unary(
        "Document.DeleteCache",
        v1.DeleteCacheRequest,
        v1.DeleteCacheResponse,
        safe=allows_missing,
        document=header_of,
    )
    set_evaluation = unary(
        "Document.SetEvaluation",
        v1.SetEvaluationRequest,
        v1.Document,
        safe=True,
        document=header_of,
    )

    @Operation
    async def text(core: Core, /, document: str, *, collection: str = "") -> str:
        """The retained text. DataLossError where what came isn't what was sent."""
        request = v1.GetTextRequest(collection=collection, document=document)
        call = Call("Document.GetText", safe=True, document=header_of(request))
        received = [piece async for piece in _received(core, call, request)]
        return b"".join(received).decode()

    @Operation
    async def export(
        core: Core, /, document: str, path: str | Path, *, collection: str = ""
    ) -> None:
        """Writes text, caches, adapters and settings into a new file, which appears only whole."""
        request = v1.ExportDocumentRequest(collection=collection, document=document)
        call = Call("Document.Export", True, LONG_S, header_of(request))
        with new_file(Path(path)) as file:
            async for piece in _received(core, call, request):
                await core.transport.offload(file.write, piece)

    @Operation
    async def import_(
        core: Core,
        /,
        path: str | Path,
        document: str = "",
        *,
        collection: str = "",
        replace_revision: int | None = None,
        progress: ProgressFunction | None = None,
    ) -> v1.Document:
        """Reads an exported file. `document`: its id; empty: the one in the file."""
        path = Path(path)
        size = (await core.transport.offload(path.stat)).st_size
        header = v1.ImportHeader(
            collection=collection,
            document=document,
            replace=replace_revision is not None,
            revision=replace_revision,
        )

        async def messages() -> AsyncGenerator[v1.ImportDocumentRequest, None]:
            sender = Sender(v1.ImportDocumentRequest, size, progress)
            yield v1.ImportDocumentRequest(header=header)
            async for piece in file_pieces(core.transport, path):
                yield sender.chunk(piece)
            yield sender.end()

        call = Call("Document.Import", timeout=LONG_S, document=header_of(header))
        imported: v1.Document = await core.unary(call, messages)
        return imported


async def _built(core: Core, call: Call, outgoing: Any, progress: ProgressFunction | None) -> Any:
    """The result that follows the progress of a build."""
    result: Any = None
    async for message in core.stream(call, outgoing, last=lambda part: part.HasField("result")):
        if message.HasField("result"):
            result = message.result
        elif progress and message.progress.phase != v1.BuildProgress.PHASE_RECEIVING:
            name = phase_name(v1.BuildProgress.Phase, message.progress.phase)
            progress(Progress(name, message.progress.fraction))
    return result


async def _received(core: Core, call: Call, request: Any) -> AsyncGenerator[bytes, None]:
    """Checked chunks; the last one may have come when a check fails."""
    receiver = Receiver()
    async for message in core.stream(call, request, last=is_end, delivers=is_chunk):
        if message.HasField("chunk"):
            yield receiver.take(message.chunk)
        else:
            receiver.check(message.end)


def _derived_id(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DERIVED_ID_DIGITS]
