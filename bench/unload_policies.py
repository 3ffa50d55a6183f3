#!/usr/bin/env python3
"""Draws what unload_policy_simulator prints: unload_policies.py SIMULATOR.csv PLOT.png"""

import csv
import sys
from collections import defaultdict

import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot

COLOURS = {"lru": "tab:gray", "greedy-dual-size": "tab:blue"}


def main(table, picture):
    lines = defaultdict(list)
    with open(table) as file:
        for row in csv.DictReader(file):
            lines[row["trace"], row["policy"]].append(
                (float(row["budget_share"]), float(row["hit_rate"])))
    traces = list(dict.fromkeys(trace for trace, _ in lines))
    figure, axes = pyplot.subplots(1, len(traces), figsize=(3.2 * len(traces), 3.2), sharey=True)
    for axis, trace in zip(axes, traces):
        for (name, policy), points in lines.items():
            if name == trace:
                axis.plot(*zip(*points), marker="o", markersize=3, color=COLOURS[policy],
                          label=policy)
        axis.set(title=trace, xscale="log", xlabel="budget ÷ all bytes", ylim=(0, 1))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("hit rate")
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
