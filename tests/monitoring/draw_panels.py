"""Draws the dashboard without Grafana: draw_panels.py FOLDER plays the scenario and writes a
picture of each row of panels. Needs prometheus, and matplotlib as in eval/requirements.txt."""

import json
import re
import sys
import tempfile
from pathlib import Path

import deployed
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import scenario  # noqa: E402

COLUMNS = 3


def rows():
    """Title of a row → its panels."""
    found = {}
    for panel in json.loads((deployed.GRAFANA / "dashboard.json").read_text())["panels"]:
        if panel["type"] == "row":
            found[panel["title"]] = []
        else:
            found[[*found][-1]].append(panel)
    return found


def draw_panel(axes, panel, prometheus):
    for target in panel["targets"]:
        for labels, values in prometheus.history(target["expr"]):
            legend = re.sub(r"\{\{(\w+)\}\}", lambda name, labels=labels: labels[name[1]],
                            target["legendFormat"])
            times, numbers = zip(*values, strict=True)
            axes.plot([at - prometheus.began for at in times], numbers, label=legend)
    unit = panel["fieldConfig"]["defaults"]["unit"]
    axes.set_title(f"{panel['title']} [{unit}]", fontsize=9)
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=6)


def draw_row(title, panels, prometheus, folder):
    lines = -(-len(panels) // COLUMNS)
    figure, grid = plt.subplots(lines, COLUMNS, figsize=(15, 3.4 * lines), squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    for axes, panel in zip(grid.flat, panels):
        draw_panel(axes, panel, prometheus)
    figure.suptitle(f"{title} (seconds since the start)")
    figure.tight_layout()
    figure.savefig(folder / f"{title.lower().replace(' ', '-')}.png", dpi=80)
    plt.close(figure)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, scenario.played(Path(place)) as prometheus:
        for title, panels in rows().items():
            draw_row(title, panels, prometheus, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
