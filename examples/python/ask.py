"""Reads a text file into the daemon and asks it: ask.py FILE QUESTION

The daemon is at DOCMEM_ADDRESS, else at 127.0.0.1:7600.
"""

import sys
from pathlib import Path

import docmem


def main(file: Path, question: str) -> None:
    with docmem.Client() as client:
        # The same text again is no work: the daemon knows it by its digest.
        with docmem.ProgressLine() as line:
            read = client.documents.ingest(file.read_bytes(), ratios=[0.9], progress=line)
        answer = client.ask(read.document.id, question, max_tokens=64)
        for piece in answer:
            print(piece, end="", flush=True)
        print()
        if answer.finished:
            seconds = answer.finished.first_token_seconds
            print(f"first token after {seconds * 1000:.0f} ms", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(Path(sys.argv[1]), sys.argv[2])
    except (OSError, docmem.DocMemError) as error:
        sys.exit(f"ask.py: {error}")
