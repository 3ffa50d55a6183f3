#!/usr/bin/env python3
"""Draws what score.py has computed.

    eval/plot.py build/eval/small/scores.json

writes beside it, for each run: RUN-modes.png (ROUGE-L against ρ, one line per mode, one panel
per supervision), RUN-supervisions.png (one line per supervision) and RUN-bytes.png (ROUGE-L
against the bytes that a document takes). Unseen and seen questions have a row of panels each; bands
are 95 % confidence intervals.
"""

import argparse
import json
from pathlib import Path

from score import ratio_text

MODES = ["BASE", "BASE_KV_ADAPTER_DECODE", "ADAPTER_PREFILL", "BASE_SCORE_ADAPTER_PREFILL"]
SUPERVISIONS = ["SYNTHETIC_QA", "RAW_CONTEXT", "CONTEXT_CONTINUATION", "CONTEXT_QA"]
DEFAULT_MODE = "BASE_KV_ADAPTER_DECODE"
LEGEND_INCHES = 2.3  # of the longest name
COLOURS = ["#555555", "#3b75af", "#c44e52", "#5a9e6f", "#8d6ab0"]


def series(rows, part, mode, supervision=""):
    """The rows of one line, by rising ratio; the base model's have no supervision."""
    wanted = (part, mode, "" if mode == "BASE" else supervision)
    return sorted((row for row in rows
                   if (row["part"], row["mode"], row["supervision"]) == wanted),
                  key=lambda row: row["ratio_ppm"])


def values(line, measure="rouge_l"):
    return [row[measure][key] for key in ("mean", "low", "high") for row in line]


def total_bytes(row):
    return row["cache_bytes"] + row["adapter_bytes"]


def present(rows, key, order):
    return [name for name in order if any(row[key] == name for row in rows)]


def parts_of(rows):
    return present(rows, "part", ["unseen", "seen"])


class Figure:
    """A grid of panels: a row per part of the questions."""

    def __init__(self, rows, titles):
        from matplotlib import pyplot

        self.parts = parts_of(rows)
        self.figure, axes = pyplot.subplots(
            len(self.parts), len(titles), squeeze=False, sharey="row",
            figsize=(max(7.0, 1.6 + 3.4 * len(titles)), 0.8 + 2.8 * len(self.parts)))
        self.panels = {(part, title): axes[y][x] for y, part in enumerate(self.parts)
                       for x, title in enumerate(titles)}
        for (part, title), panel in self.panels.items():
            panel.set_title(f"{title}, {part}" if title else part, fontsize=9)
            panel.grid(alpha=0.3)
        for row in axes:
            row[0].set_ylabel("ROUGE-L")

    def save(self, path):
        handles, labels = next(iter(self.panels.values())).get_legend_handles_labels()
        columns = min(len(labels), int(self.figure.get_figwidth() / LEGEND_INCHES))
        lines = -(-len(labels) // columns)
        self.figure.legend(handles, labels, loc="lower center", ncols=columns, fontsize=8,
                           frameon=False)
        self.figure.tight_layout(rect=(0, 0.25 * lines / self.figure.get_figheight(), 1, 1))
        self.figure.savefig(path, dpi=120)


def draw_against_ratio(panel, line, ratios, name, colour):
    # Ratios lie close together near 1: they are put side by side, not to scale.
    places = [ratios.index(row["ratio_ppm"]) for row in line]
    count = len(line)
    numbers = values(line)
    panel.plot(places, numbers[:count], marker="o", markersize=3, color=colour, label=name)
    panel.fill_between(places, numbers[count:2 * count], numbers[2 * count:], color=colour,
                       alpha=0.15, linewidth=0)
    panel.set_xticks(range(len(ratios)), [ratio_text(ppm) for ppm in ratios], fontsize=7)
    panel.set_xlabel("compression ratio ρ", fontsize=8)


def draw_modes(rows, path):
    ratios = sorted({row["ratio_ppm"] for row in rows})
    figure = Figure(rows, present(rows, "supervision", SUPERVISIONS) or [""])
    for (part, supervision), panel in figure.panels.items():
        for mode, colour in zip(MODES, COLOURS):
            if line := series(rows, part, mode, supervision):
                draw_against_ratio(panel, line, ratios, mode, colour)
    figure.save(path)


def draw_supervisions(rows, path):
    ratios = sorted({row["ratio_ppm"] for row in rows})
    modes = [mode for mode in present(rows, "mode", MODES) if mode != "BASE"] or ["BASE"]
    figure = Figure(rows, modes)
    for (part, mode), panel in figure.panels.items():
        for supervision, colour in zip(["BASE", *SUPERVISIONS], COLOURS):
            line = series(rows, part, "BASE" if supervision == "BASE" else mode, supervision)
            if line:
                draw_against_ratio(panel, line, ratios, supervision, colour)
    figure.save(path)


def draw_bytes(rows, path):
    figure = Figure(rows, [""])
    labelled = next(iter(present(rows, "supervision", SUPERVISIONS)), None)
    for (part, _), panel in figure.panels.items():
        for supervision, colour in zip(["BASE", *SUPERVISIONS], COLOURS):
            mode = "BASE" if supervision == "BASE" else DEFAULT_MODE
            line = series(rows, part, mode, supervision)
            if not line:
                continue
            panel.plot([total_bytes(row) / 1e6 for row in line], values(line)[:len(line)],
                       marker="o", markersize=3, color=colour, label=supervision)
            # Lines of adapters lie shifted by the adapter's size: one of them is labelled for all.
            for row in line if supervision in ("BASE", labelled) else []:
                panel.annotate(ratio_text(row["ratio_ppm"]),
                               (total_bytes(row) / 1e6, row["rouge_l"]["mean"]), fontsize=6,
                               textcoords="offset points", xytext=(2, 3))
        panel.set_xscale("log")
        panel.set_xlabel("cache and adapter, MB a document", fontsize=8)
    figure.save(path)


def main():
    import matplotlib

    matplotlib.use("Agg")
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("scores", type=Path, metavar="FILE")
    options = parser.parse_args()
    rows = json.loads(options.scores.read_text())
    for run in sorted({row["run"] for row in rows}):
        members = [row for row in rows if row["run"] == run]
        for kind, draw in (("modes", draw_modes), ("supervisions", draw_supervisions),
                           ("bytes", draw_bytes)):
            path = options.scores.parent / f"{run}-{kind}.png"
            draw(members, path)
            print(path)


if __name__ == "__main__":
    main()
