#!/usr/bin/env python3
"""Measures the engine beside its peers, in turn, and tells the ratios; see `./dev bench --help`."""

import argparse
import importlib.metadata
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

import serving
from rows import COSTS, PEAKS, ROWS, Row, answers_in_turn, decode
from served import add_options

ROOT = Path(__file__).resolve().parent.parent
PEERS = Path(__file__).resolve().parent / "peers"
LOGS = ROOT / "build/bench"
RANK = 16
ROUTE = "route_10k"


class Worker:
    """A process that measures on request."""

    def __init__(self, command, log):
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as messages:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=messages, text=True)
        if not self.answer().get("ready"):
            sys.exit(f"{command} didn't start")

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args} ended:\n{self.log.read_text()[-2000:]}")
        return json.loads(line)

    def measure(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.answer()
        if "error" in answer:
            sys.exit(f"{self.process.args}: {request}: {answer['error']}")
        return answer

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Workers:
    """Started when first needed."""

    def __init__(self, options):
        engine = [options.build / "bench/engine_worker", options.model]
        threads = str(options.threads)
        python = sys.executable
        self.commands = {
            "engine": [*engine, options.dtype, threads],
            "engine_int8": [*engine, "int8", threads],
            "transformers": [python, PEERS / "transformers_worker.py", options.model,
                             options.dtype, threads],
            "trainer": [options.build / "bench/training_worker", options.model, options.dtype,
                        threads],
            "trainer_recompute": [options.build / "bench/training_worker", options.model,
                                  options.dtype, threads, "recompute"],
            "peft": [python, PEERS / "transformers_worker.py", options.model, options.dtype,
                     threads],
            "route": [options.build / "bench/route_worker"],
            "llama": [python, PEERS / "llama_worker.py", options.model, options.dtype, threads],
            "llama_q8": [python, PEERS / "llama_worker.py", options.model, "q8_0", threads],
        }
        self.running = {}

    def __getitem__(self, name):
        if name not in self.running:
            self.running[name] = self.start(name)
        return self.running[name]

    def start(self, name):
        return Worker([str(part) for part in self.commands[name]], LOGS / f"{name}.log")

    def peaks(self):
        """Of a fresh process of each kind that ran, which does nothing but what PEAKS says: those
        that ran also hold what single rows needed."""
        for name in [name for name in PEAKS if name in self.running]:
            self.running.pop(name).end()
            worker = self.start(name)
            for request in PEAKS[name]:
                worker.measure(request)
            yield name, worker.measure({"measure": "peak"})["bytes"]
            worker.end()


def compare(row, workers, rounds):
    sides = (row.ours, row.peer)
    answers = answers_in_turn(
        [lambda side=side: workers[side.worker].measure(side.request) for side in sides], rounds)
    ours, peer = (statistics.median(map(side.value, column)) for side, column in zip(sides, answers))
    made = {"name": row.name, "ours": ours * row.scale, "peer": peer * row.scale, "unit": row.unit,
            "ratio": ours / peer if row.ours.rate else peer / ours,
            "target": row.target, "what": row.what}
    return made if row.note is None else {**made, "note": row.note(answers[0])}


def adapter_cost(name, workers, rounds):
    """What adapters add to a step: at most a tenth for one stream; for eight with eight adapters a
    fifth, or one and a half times what reading their bytes takes."""
    streams = int(name.rsplit("_", 1)[1])
    engine = workers["engine"]
    base, adapted, sweep = [], [], []
    for number in range(rounds + 1):
        for rank, values in ((0, base), (RANK, adapted)):
            answer = engine.measure(decode(streams, rank))
            values.append(streams * answer["seconds"] / answer["tokens"])
        answer = engine.measure({"measure": "sweep"})
        sweep.append(answer["bytes"] * answer["tokens"] / answer["seconds"])
    base, adapted = statistics.median(base[1:]), statistics.median(adapted[1:])
    allowed = 0.1
    if streams > 1:
        bytes_ = streams * engine.measure({"measure": "bytes", "tokens": 400, "rank": RANK})["adapter"]
        allowed = max(0.2, 1.5 * bytes_ / statistics.median(sweep) / base)
    actual = max(adapted / base - 1.0, 1e-3)
    return {"name": name, "ours": 100 * actual, "peer": 100 * allowed, "unit": "% of a step",
            "ratio": allowed / actual, "target": 1.0,
            "what": f"{streams} stream(s) with an adapter of rank {RANK} each; allowed"}


def route_10k(workers):
    """Time of a question that names no document, in a collection without function words."""
    answer = workers["route"].measure(
        {"measure": "route", "documents": 10_000, "words": 1_000, "questions": 1_000})
    median, p95 = 1e3 * answer["median_seconds"], 1e3 * answer["p95_seconds"]
    indexed, plain = 1e3 * answer["publish_seconds"], 1e3 * answer["plain_publish_seconds"]
    return {"name": ROUTE, "ours": median, "peer": 25.0, "unit": "ms",
            "ratio": min(25.0 / median, 60.0 / p95), "target": 1.0,
            "what": "a question to 10,000 documents of 1,000 words; allowed",
            "note": f"p95 {p95:.1f} ms (60 allowed), longest {1e3 * answer['longest_seconds']:.1f} ms; "
                    f"its document comes first for {answer['found_first']:.3f}; a document's "
                    f"publication takes {indexed:.1f} ms, without an index {plain:.1f} ms, and "
                    f"{answer['bytes_per_document'] / 1e3:.1f} kB of registry"}


def plot(rows, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 0.38 * len(rows) + 1.2))
    for index, row in enumerate(reversed(rows)):
        reached = row["target"] is None or row["ratio"] >= row["target"]
        axes.barh(index, row["ratio"], color="#3b75af" if reached else "#c44e52", height=0.62)
        axes.text(row["ratio"] * 1.04, index, f"{row['ratio']:.2f}", va="center", fontsize=8)
        if row["target"]:
            axes.plot([row["target"]] * 2, [index - 0.4, index + 0.4], color="black", linewidth=2)
    axes.set_yticks(range(len(rows)), [row["name"] for row in reversed(rows)], fontsize=8)
    axes.set_xscale("log")
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.set_xlabel("engine ÷ peer, higher is better; black line: target")
    axes.margins(x=0.12)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def machine():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{len(names)} × {names[0] if names else platform.machine()}"


def conditions(options):
    """What the figures hold for, in lines."""
    peers = ("transformers", "kvpress", "peft", "llama-cpp-python", "torch")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in peers)
    kv_type = "float32" if options.dtype == "float32" else "bfloat16"
    return (f"{machine()}, {options.threads} threads, {options.model.name}, {options.dtype}; "
            f"decode: 64-token prompt, 128 tokens, greedy; medians of {options.rounds} rounds in turn\n"
            f"peers: {versions}; llama.cpp: flash attention, keys and values in {kv_type}, q8_0 "
            "without extra buffers; transformers: sdpa")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="rows whose names hold a NAME")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--plot", type=Path, default=ROOT / "build/bench/ratios.png",
                        metavar="FILE", help="picture of the ratios (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements per side (%(default)s)")
    parser.add_argument("--load-seconds", type=int, default=100, metavar="N",
                        help="questions at a rate are asked for so long (%(default)s)")
    add_options(parser)
    options = parser.parse_args()

    def wanted(name):
        return options.only is None or any(part in name for part in options.only)

    workers = Workers(options)
    print(conditions(options))
    print(f"{'row':28} {'engine':>10} {'peer':>10} {'unit':12} {'ratio':>6} {'target':>6}  peer is",
          flush=True)
    rows = []
    todo = [row for row in ROWS if wanted(row.name)]
    todo += [name for name in (*COSTS, ROUTE, *serving.ROWS) if wanted(name)]
    if not todo:
        sys.exit(f"no row matches {' '.join(options.only)}")
    load = serving.Serving(options, workers)
    for item in todo:
        if isinstance(item, Row):
            row = compare(item, workers, options.rounds)
        elif item in COSTS:
            row = adapter_cost(item, workers, options.rounds)
        elif item == ROUTE:
            row = route_10k(workers)
        else:
            row = load.row(item)
        rows.append(row)
        target = "" if row["target"] is None else f"{row['target']:.2f}"
        print(f"{row['name']:28} {row['ours']:10.1f} {row['peer']:10.1f} {row['unit']:12} "
              f"{row['ratio']:6.2f} {target:>6}  {row['what']}", flush=True)
        if "note" in row:
            print(f"{'':28} {row['note']}", flush=True)
    if "engine" in workers.running:
        sizes = workers["engine"].measure({"measure": "bytes", "tokens": 2000, "rank": RANK})
        print("bytes per document of 2,000 tokens: "
              + ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in sizes.items()))
    for name, peak in workers.peaks():
        print(f"peak memory of a fresh {name}, 2,000 tokens ingested and 128 decoded: "
              f"{peak / 1e6:.0f} MB")
    plot(rows, options.plot)
    print(f"plot: {options.plot}")
    if options.json:
        keys = ("name", "ours", "peer", "unit", "ratio")
        options.json.write_text(
            json.dumps([{key: row[key] for key in keys} for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
