"""What `./dev bench` measures of the whole daemon under load: docmemd, load_generator, loopback."""

import bisect
import shutil
import statistics
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rows import in_turn
from served import FOLDER, QUESTION, RATIO, ROOT, Daemon, Served, document, failed

sys.path.append(str(ROOT / "bench/peers"))

from prompt import Prompt  # noqa: E402  (behind the path)

SENTENCES = {"long": 160, "middle": 80, "short": 30}  # about 1,650, 830 and 310 tokens
ANSWER_TOKENS = 64
SHORT_ANSWER_TOKENS = 32
SHARE_OF_CAPACITY = 0.55
LONG_TOKENS = 7800
# With the default of 512 no context of 7,800 tokens fits into SmolLM2's 8,192 positions.
QUESTION_RESERVE = 256
TINY = ROOT / "tests/reference/models/tiny-llama"


class Serving:
    """Measures rows by name; documents that several rows ask are made once."""

    def __init__(self, options, workers):
        self.options, self.workers = options, workers
        self.sixteen = None

    def row(self, name):
        return {"name": name, **ROWS[name](self)}

    def answers_of(self, worker, questions):
        """Tokens per second of a peer that answers on the sixteen documents one after another."""
        prompt = Prompt(self.options.model)
        served = self.sixteen
        request = {"measure": "answers", "contexts": [prompt.context(text) for text in served.texts],
                   "adapters": [str(served.adapter(n)) for n in range(len(served.texts))],
                   "question": prompt.question(QUESTION), "questions": questions,
                   "tokens": ANSWER_TOKENS}
        answer = self.workers[worker].measure(request)
        return answer["tokens"] / answer["seconds"]

    def serve_16(self, worker, questions, target, what):
        if self.sixteen is None:
            self.sixteen = Served(self.options, "sixteen", 16, SENTENCES["long"])
        served = self.sixteen
        with served.daemon() as daemon:
            served.prefetch(daemon)

            def ours():
                report = served.load(daemon, clients=16, own=True, seconds=self.options.load_seconds / 4,
                                     max_tokens=ANSWER_TOKENS)
                refuse_failures(report)
                return report["tokens_per_second"]

            rate, peer = in_turn([ours, lambda: self.answers_of(worker, questions)],
                                 self.options.rounds)
        return {"ours": rate, "peer": peer, "unit": "tokens/s", "ratio": rate / peer,
                "target": target,
                "what": f"16 clients on 16 documents with an adapter each; {what}"}

    def thrash(self):
        """The same questions at the same moments, with room for all 64 documents and for 16."""
        served = Served(self.options, "thrash", 64, SENTENCES["middle"])
        with served.daemon() as daemon:
            served.prefetch(daemon)
            rate = SHARE_OF_CAPACITY * capacity(served, daemon, SHORT_ANSWER_TOKENS)
            all_resident = self.open_loop(served, daemon, rate)
        with served.daemon(budget=served.bytes // 4) as daemon:
            served.prefetch(daemon)
            over_budget = self.open_loop(served, daemon, rate)
        served.delete()
        ours, peer = (report["first_token_ms"] for report in (over_budget, all_resident))
        return {"ours": ours["p50"], "peer": peer["p50"], "unit": "ms",
                "ratio": peer["p50"] / ours["p50"], "target": 1 / 3,
                "what": "first token, 64 documents with adapters, room for 16; room for all",
                "note": f"p99 {ours['p99']:.0f} ms and {peer['p99']:.0f} ms: "
                        f"{ours['p99'] / peer['p99']:.2f} × (10 × allowed); {rate:.1f} questions/s, "
                        f"{over_budget['questions']} and {all_resident['questions']} questions"}

    def starvation(self):
        """The worse of two loads: more clients than are decoded together, and random moments."""
        served = Served(self.options, "starvation", 200, SENTENCES["short"])
        with served.daemon(budget=served.bytes // 4) as daemon:
            served.prefetch(daemon)
            rate = SHARE_OF_CAPACITY * capacity(served, daemon, SHORT_ANSWER_TOKENS)
            loads = {"64 clients": self.closed_loop(served, daemon),
                     f"{rate:.1f} questions/s": self.open_loop(served, daemon, rate)}
        served.delete()
        cases = [(report["coldest_quarter_first_token_ms"]["p95"],
                  5 * report["first_token_ms"]["p50"]) for report in loads.values()]
        coldest, allowed = max(cases, key=lambda case: case[0] / case[1])
        notes = [f"{name}: {ours:.0f} ms, median {limit / 5:.0f} ms, {report['questions']} questions"
                 for (name, report), (ours, limit) in zip(loads.items(), cases)]
        return {"ours": coldest, "peer": allowed, "unit": "ms", "ratio": allowed / coldest,
                "target": 1.0, "note": "; ".join(notes),
                "what": "p95 first token of the coldest quarter of 200, room for 50; 5 × median"}

    def closed_loop(self, served, daemon):
        report = served.load(daemon, clients=64, zipf=1, max_tokens=SHORT_ANSWER_TOKENS,
                             seconds=self.options.load_seconds)
        refuse_failures(report)
        return report

    def open_loop(self, served, daemon, rate):
        report = served.load(daemon, clients=128, rate=rate, zipf=1, max_tokens=SHORT_ANSWER_TOKENS,
                             seconds=self.options.load_seconds)
        refuse_failures(report)
        return report

    def gap_during_ingest(self):
        """One stream through the daemon, alone and beside `docmem ingest` to its end: the longest
        units of work come last. Of the stretches beside it, each as long as the one alone, the worst
        counts."""
        served = Served(self.options, "gap", 1, SENTENCES["middle"])
        text = served.folder / "long"
        text.write_text(text_of(LONG_TOKENS, self.options.model))
        took = []

        def ingest(daemon):
            began = time.monotonic()
            daemon.call("ingest", str(text), "--id", "long", "--ratio", RATIO)
            took.append(time.monotonic() - began)

        def stream(daemon):
            report = served.load(daemon, own=True, seconds=self.options.load_seconds / 10,
                                 max_tokens=ANSWER_TOKENS)
            refuse_failures(report)
            return report["gap_ms"]["p99"]

        def beside(daemon):
            gaps = []
            with ThreadPoolExecutor(1) as pool:
                ingestion = pool.submit(ingest, daemon)
                while not ingestion.done() and not building(daemon):
                    time.sleep(0.01)
                while not ingestion.done():
                    gaps.append(stream(daemon))
                ingestion.result()
            daemon.call("delete", "long")
            return max(gaps)

        with served.daemon("--question-reserve", str(QUESTION_RESERVE)) as daemon:
            served.prefetch(daemon)
            gap, allowed = in_turn([lambda: beside(daemon), lambda: 3 * stream(daemon)],
                                   self.options.rounds)
        served.delete()
        return {"ours": gap, "peer": allowed, "unit": "ms", "ratio": allowed / gap, "target": 1.0,
                "what": f"p99 between two tokens while {LONG_TOKENS} are ingested; 3 × alone",
                "note": f"the ingestion took {statistics.median(took[1:]):.1f} s beside the stream"}

    def start(self):
        """From the process's start to SERVING; the tiny model, so that its loading counts little."""
        count, folder = 1000, FOLDER / "start"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        empty = self.start_once(folder)
        fill(self.tiny(folder), folder, count)
        full = self.start_once(folder)
        stored = sum(path.stat().st_size for path in (folder / "data").rglob("*") if path.is_file())
        return {"ours": 1e3 * full["seconds"], "peer": 2000.0, "unit": "ms",
                "ratio": 2.0 / full["seconds"], "target": 1.0,
                "what": f"start with {count} documents until it serves; allowed",
                "note": f"without documents {1e3 * empty['seconds']:.0f} ms; read "
                        f"{(full['read'] - empty['read']) / 1e6:.2f} MB more of the "
                        f"{stored / 1e6:.0f} MB stored; /metrics {full['metrics'] / 1e3:.1f} kB"}

    def tiny(self, folder):
        return Daemon(self.options.build / "bin", TINY, folder, "--dtype", "float32")

    def start_once(self, folder):
        with self.tiny(folder) as daemon:
            began = time.monotonic()
            daemon.start()
            seconds = time.monotonic() - began
            read = read_bytes(daemon.pid)
            with urllib.request.urlopen(f"http://{daemon.metrics_address}/metrics", timeout=10) as page:
                metrics = len(page.read())
            daemon.stop()
        return {"seconds": seconds, "read": read, "metrics": metrics}


def capacity(served, daemon, tokens, seconds=20):
    """Questions per second of as many clients as are decoded together, on all documents alike."""
    report = served.load(daemon, clients=32, zipf=1, seconds=seconds, max_tokens=tokens)
    refuse_failures(report)
    return report["questions_per_second"]


def text_of(tokens, model):
    """A report of as many sentences as fit into so many tokens, those in front of it included."""
    prompt = Prompt(model)
    return document(0, bisect.bisect_right(
        range(tokens), tokens, key=lambda count: len(prompt.context(document(0, count)))) - 1)


def building(daemon):
    return daemon.call("status").get("queue", {}).get("building", 0)


def refuse_failures(report):
    if failed(report):
        sys.exit(f"{failed(report)} of {report['questions']} questions failed: {report['errors']}")


def read_bytes(pid):
    """All that a process got from read() and its like."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar:"))


def fill(daemon, folder, count):
    """One document with cache and adapter, exported and brought in again under other ids."""
    text, archive = folder / "text", folder / "archive"
    text.write_text(QUESTION * 4)
    with daemon:
        daemon.start()
        daemon.call("ingest", str(text), "--id", "d0000", "--ratio", "0")
        daemon.call("adapter", "upload", "d0000", str(ROOT / "tests/reference/adapters/all-modules"))
        daemon.call("export", "d0000", str(archive))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: daemon.call("import", str(archive), "--id", f"d{n:04}"),
                          range(1, count)))
        daemon.stop()


ROWS = {
    "serve_16_vs_llamacpp": lambda serving: serving.serve_16(
        "llama", 16, 3.0, "llama.cpp, one adapter at a time, each whole document resident"),
    "serve_16_vs_peft": lambda serving: serving.serve_16(
        "transformers", 3, 4.0, "peft, one after another, on kvpress' caches"),
    "thrash_ttft": Serving.thrash,
    "starvation_200": Serving.starvation,
    "start_1000": Serving.start,
    "decode_gap_during_ingest": Serving.gap_during_ingest,
}
