#!/usr/bin/env python3
"""Asks the daemon for a while at 80 % of what it can do, and watches its answers and its memory.

    build/bench/venv/bin/python bench/soak.py --minutes 20
    build/bench/venv/bin/python bench/soak.py --draw build/bench/soak.csv --plot docs/soak.png

64 documents with an adapter each, room for 16 of them; Zipf 1, questions at random moments. Every
answer is compared with the one that its document gave alone. Exits 1 if a question failed, an
answer differs, or the resident memory of the last tenth is 3 % above that of the first. The
samples of the memory go to a file beside the plot, from which --draw makes the plot again.
"""

import argparse
import csv
import statistics
import sys
import threading
import time
from pathlib import Path

from served import ROOT, Served, add_options, failed
from serving import SENTENCES, SHORT_ANSWER_TOKENS, capacity

SHARE = 0.8
ALLOWED_GROWTH = 0.03
WARM_UP_SECONDS = 60


class ResidentMemory(threading.Thread):
    """Samples a process' resident bytes until it is told to stop."""

    def __init__(self, pid, every):
        super().__init__()
        self.path, self.every = Path(f"/proc/{pid}/status"), every
        self.samples = []  # (when, bytes)
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(self.every):
            line = next(line for line in self.path.read_text().splitlines() if "VmRSS" in line)
            self.samples.append((time.monotonic(), 1024 * int(line.split()[1])))

    def stop(self):
        self.over.set()
        self.join()


def growth(samples):
    """Of the last tenth's median above the first's."""
    tenth = max(1, len(samples) // 10)
    first, last = (statistics.median(size for _, size in part)
                   for part in (samples[:tenth], samples[-tenth:]))
    return last / first - 1.0


def write(samples, path):
    """Seconds since the first sample, and bytes."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("seconds", "resident_bytes"))
        rows.writerows((f"{when - samples[0][0]:.2f}", size) for when, size in samples)


def read(path):
    with path.open(newline="") as file:
        return [(float(row["seconds"]), int(row["resident_bytes"])) for row in csv.DictReader(file)]


def plot(samples, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 3))
    began = samples[0][0]
    axes.plot([(when - began) / 60 for when, _ in samples], [size / 1e6 for _, size in samples])
    top = 1.1e-6 * max(size for _, size in samples)
    axes.set(xlabel="minutes", ylabel="resident memory, MB", ylim=(0, top))
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def run(options):
    """The generator's report with rate, capacity and the samples taken while questions came."""
    served = Served(options, "soak", options.documents, SENTENCES["middle"])
    with served.daemon(budget=served.bytes // 4) as daemon:
        served.prefetch(daemon)
        most = capacity(served, daemon, SHORT_ANSWER_TOKENS, WARM_UP_SECONDS)
        memory = ResidentMemory(daemon.pid, options.every)
        memory.start()
        try:
            report = served.load(daemon, clients=128, rate=SHARE * most, zipf=1, check=True,
                                 max_tokens=SHORT_ANSWER_TOKENS, seconds=60 * options.minutes)
        finally:
            memory.stop()
        began = time.monotonic() - report["seconds"]
    served.delete()
    return report, most, [sample for sample in memory.samples if sample[0] >= began]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20, help="(%(default)s)")
    parser.add_argument("--every", type=float, default=2, metavar="SECONDS",
                        help="between two samples of the memory (%(default)s)")
    parser.add_argument("--documents", type=int, default=64, help="(%(default)s)")
    parser.add_argument("--plot", type=Path, default=ROOT / "build/bench/soak.png",
                        metavar="FILE", help="picture of the memory (%(default)s)")
    parser.add_argument("--draw", type=Path, metavar="FILE",
                        help="ask nothing; draw the samples of an earlier run")
    add_options(parser)
    options = parser.parse_args()
    if options.draw:
        plot(read(options.draw), options.plot)
        return
    report, most, samples = run(options)
    kept = options.plot.with_suffix(".csv")
    write(samples, kept)
    plot(samples, options.plot)
    grown = growth(samples)
    first_token = report["first_token_ms"]
    print(f"{report['questions']} questions in {report['seconds']:.0f} s, "
          f"{report['questions_per_second']:.2f} answers/s of {most:.2f} possible, "
          f"{report['tokens_per_second']:.1f} tokens/s\n"
          f"first token: p50 {first_token['p50']:.0f} ms, p99 {first_token['p99']:.0f} ms\n"
          f"errors: {report['errors'] or 'none'}\n"
          f"answers that differ from those given alone: {report['different_answers']}\n"
          f"resident memory: {samples[0][1] / 1e6:.1f} MB at first, {samples[-1][1] / 1e6:.1f} MB at "
          f"last; last tenth above first: {100 * grown:.2f} %\nplot: {options.plot}, its samples: {kept}")
    if failed(report) or grown > ALLOWED_GROWTH:
        sys.exit(1)


if __name__ == "__main__":
    main()
