"""Reads every text file of a folder into a collection: ingest_folder.py FOLDER COLLECTION

A file's name becomes its document's id. Run again, it only reads what has changed.
"""

import sys
from pathlib import Path

import docmem


def ingest(client: docmem.Client, file: Path, collection: str) -> str:
    """What happened to the file, in a word."""
    text, id = file.read_bytes(), file.name
    with docmem.ProgressLine() as line:
        try:
            read = client.documents.ingest(text, id, collection=collection, progress=line)
            return "read" if read.built_cache_ids else "known"
        except docmem.AlreadyExistsError as error:
            if error.reason != "DOCUMENT_EXISTS":
                raise
        stored = client.documents.get(collection=collection, document=id)
        client.documents.ingest(
            text, id, collection=collection, replace_revision=stored.revision, progress=line
        )
        return "replaced"


def main(folder: Path, collection: str) -> None:
    with docmem.Client() as client:
        try:
            client.collections.create(name=collection)
        except docmem.AlreadyExistsError:
            pass
        for file in sorted([*folder.glob("*.txt"), *folder.glob("*.md")]):
            print(f"{file.name}: {ingest(client, file, collection)}")
        documents = list(client.documents.list(collection=collection))
        print(f"{len(documents)} documents in {collection}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(Path(sys.argv[1]), sys.argv[2])
    except (OSError, docmem.DocMemError) as error:
        sys.exit(f"ingest_folder.py: {error}")
