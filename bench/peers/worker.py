"""The lines that a peer's worker speaks: a JSON object in, one out; see engine_worker.cc."""

import json
import sys
import time


def context_ids(tokens):
    """The same ids as engine_worker's documents."""
    return [i * 7919 % 20_000 + 100 for i in range(tokens)]


def question_ids():
    """The 32 ids of engine_worker's question."""
    return [700 + 41 * i for i in range(32)]


def prompt_ids():
    """A prompt of 64 ids, as long as the engine's head and question together."""
    return context_ids(20) + [500 + 37 * i for i in range(44)]


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class InTurn:
    """Questions one after another, each on the next document, with that document's adapter."""

    def __init__(self, answer, documents):
        """answer(document's number, question's ids, tokens of the answer)."""
        self.answer, self.documents = answer, documents
        self.asked = 0

    def run(self, questions, question, tokens):
        def go():
            for _ in range(questions):
                self.answer(self.asked % self.documents, question, tokens)
                self.asked += 1

        return {"seconds": timed(go), "tokens": questions * tokens}


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) * 1024


def serve(measures):
    """Answers requests with `measures[request["measure"]](**the other fields)` until input ends."""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        name = request.pop("measure")
        try:
            answer = {"bytes": peak_bytes()} if name == "peak" else measures[name](**request)
        except Exception as error:  # told to the one who asked
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
