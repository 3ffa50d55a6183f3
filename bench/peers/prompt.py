"""What DocMem puts around documents and questions (its prompt format `chatml`), as token ids."""

from pathlib import Path

from tokenizers import Tokenizer

SYSTEM = "Answer the question about the document briefly, using only the document."
HEAD = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\nDocument:\n"
BRIDGE = "\n\nQuestion: "
TAIL = "<|im_end|>\n<|im_start|>assistant\n"


class Prompt:
    def __init__(self, model: Path):
        self._tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))

    def context(self, document):
        return self._encode(HEAD) + self._encode(document)

    def question(self, question):
        return self._encode(BRIDGE + question) + self._encode(TAIL)

    def _encode(self, text):
        return self._tokenizer.encode(text).ids
