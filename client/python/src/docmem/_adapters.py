"""AdapterService as both clients have it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

from docmem import v1
from docmem._chunks import Receiver, Sender, file_pieces, is_end
from docmem._core import LONG_S, Call, Core
from docmem._files import new_folder
from docmem._operation import Operation, paged, unary
from docmem._requests import allows_missing, header_of
from docmem.progress import ProgressFunction

_CONFIG = "adapter_config.json"
_FILES = (_CONFIG, "adapter_model.safetensors", "README.md")


class Adapters:
    @Operation
    async def upload(
        core: Core,
        /,
        document: str,
        folder: str | Path,
        *,
        collection: str = "",
        scope: v1.AdapterScope | None = None,
        allow_other_base: bool = False,
        prompt_format_digest: str = "",
        text_digest: str = "",
        keep_current: bool = False,
        progress: ProgressFunction | None = None,
    ) -> v1.Adapter:
        """Sends a folder in PEFT format: its adapter_config.json, adapter_model.safetensors and
        README.md. See AdapterHeader."""
        header = v1.AdapterHeader(
            collection=collection,
            document=document,
            scope=scope,
            allow_other_base=allow_other_base,
            prompt_format_digest=prompt_format_digest,
            text_digest=text_digest,
            keep_current=keep_current,
        )
        sizes = await core.transport.offload(_sizes, Path(folder))

        async def messages() -> AsyncGenerator[v1.UploadAdapterRequest, None]:
            sender = Sender(v1.UploadAdapterRequest, sum(sizes.values()), progress)
            yield v1.UploadAdapterRequest(header=header)
            for path, size in sizes.items():
                file = v1.AdapterFile(name=path.name, size_bytes=size)
                yield v1.UploadAdapterRequest(file=file)
                async for piece in file_pieces(core.transport, path):
                    yield sender.chunk(piece)
            yield sender.end()

        call = Call("Adapter.Upload", True, LONG_S, header_of(header))
        adapter: v1.Adapter = await core.unary(call, messages)
        return adapter

    @Operation
    async def download(
        core: Core, /, document: str, folder: str | Path, *, collection: str = "", version: int = 0
    ) -> None:
        """Writes a version's files into a new folder, which appears only whole; 0: the current
        one."""
        request = v1.DownloadAdapterRequest(
            collection=collection, document=document, version=version
        )
        call = Call("Adapter.Download", True, LONG_S, header_of(request))
        receiver = Receiver()
        offload = core.transport.offload
        with new_folder(Path(folder)) as files:
            # A file's beginning is delivered too: a second try would begin it again.
            async for message in core.stream(
                call, request, last=is_end, delivers=lambda part: not is_end(part)
            ):
                if message.HasField("file"):
                    await offload(files.begin, message.file.name)
                elif message.HasField("chunk"):
                    await offload(files.write, receiver.take(message.chunk))
                else:
                    receiver.check(message.end)

    get = unary("Adapter.Get", v1.GetAdapterRequest, v1.Adapter, safe=True, document=header_of)
    list = paged("Adapter.List", v1.ListAdaptersRequest, "adapters", v1.Adapter, document=header_of)
    set_current = unary(
        "Adapter.SetCurrent",
        v1.SetCurrentAdapterRequest,
        v1.SetCurrentAdapterResponse,
        document=header_of,
    )
    delete = unary(
        "Adapter.Delete",
        v1.DeleteAdapterRequest,
        v1.DeleteAdapterResponse,
        safe=allows_missing,
        document=header_of,
    )


def _sizes(folder: Path) -> dict[Path, int]:
    if not (folder / _CONFIG).is_file():
        raise FileNotFoundError(f"{folder} has no {_CONFIG}: it isn't an adapter in PEFT format")
    return {path: path.stat().st_size for name in _FILES if (path := folder / name).is_file()}
