"""Draws each round of a section as a point, and the medians as bars or strokes: plot_section.py FOLDER COMMAND

Runs in the environment that install.py makes for matplotlib.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from figures import Figures
from plot import COLOURS
from section import SECTIONS, peers_of


def main():
    folder, command = Path(sys.argv[1]), sys.argv[2]
    section = next(section for section in SECTIONS if section.command == command)
    # The same data gives the same file.
    plt.rcParams |= {"svg.hashsalt": "performance", "font.size": 9, "svg.fonttype": "none", "font.family": "sans-serif"}
    figures = Figures(section.data)
    for workload in section.workloads:
        if workload.plot and peers_of(figures, workload):
            draw(figures, workload, folder / f"performance-{workload.plot}.svg")


def draw(figures, workload, file):
    """A panel for each column, a bar for each peer."""
    peers = peers_of(figures, workload)
    chart, panels = plt.subplots(
        1,
        len(workload.columns),
        figsize=(9, 0.6 + (0.3 if workload.logarithmic else 0.45) * len(peers)),
        sharey=True,
        sharex=not workload.logarithmic,
        layout="constrained",
        squeeze=False,
    )
    for axes, (title, (test, metric)) in zip(panels[0], workload.columns.items()):
        for place, peer in enumerate(peers):
            values = [value * workload.scale for value in figures.values(peer, test, metric).values()]
            if not values:
                continue
            colour = next((COLOURS[name] for name in COLOURS if peer.startswith(name)), COLOURS["floor"])
            median = figures.figure(peer, test, metric).median * workload.scale
            if workload.logarithmic:
                axes.plot(median, place, "|", color=colour, markersize=14, markeredgewidth=2)
            else:
                axes.barh(place, median, 0.6, color=colour, alpha=0.55)
            axes.plot(values, [place] * len(values), ".", color=colour, markersize=5)
        if workload.logarithmic:
            axes.set_xscale("log")
        axes.set_title(title, fontsize=10)
        axes.set_xlabel(workload.label)
        axes.set_yticks(range(len(peers)), peers)
        axes.grid(True, axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0][0].invert_yaxis()
    chart.savefig(file, metadata={"Date": None})
    plt.close(chart)


if __name__ == "__main__":
    main()
