"""Asks a document several questions at once: stream_asyncio.py DOCUMENT QUESTION...

The daemon answers them in one batch; each piece is printed as it comes.
"""

import asyncio
import sys

import docmem


async def ask(client: docmem.AsyncClient, document: str, number: int, question: str) -> None:
    answer = client.ask(document, question, max_tokens=32)
    async for piece in answer:
        print(f"{number}: {piece!r}")
    print(f"{number}: {question} -> {answer.text!r}")


async def main(document: str, questions: list[str]) -> None:
    async with docmem.AsyncClient() as client:
        asked = (ask(client, document, *each) for each in enumerate(questions, start=1))
        await asyncio.gather(*asked)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        asyncio.run(main(sys.argv[1], sys.argv[2:]))
    except docmem.DocMemError as error:
        sys.exit(f"stream_asyncio.py: {error}")
