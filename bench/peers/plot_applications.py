"""Draws each round of the applications as a point, and the medians as bars: plot_applications.py FOLDER

Runs in the environment that install.py makes for matplotlib.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from figures import Figures
from plot import COLOURS
from section import DATA, peers_of
from workloads import WORKLOADS


def main():
    folder = Path(sys.argv[1])
    # The same data gives the same file.
    plt.rcParams |= {"svg.hashsalt": "performance", "font.size": 9, "svg.fonttype": "none", "font.family": "sans-serif"}
    figures = Figures(DATA)
    for workload in WORKLOADS:
        if peers_of(figures, workload):
            draw(figures, workload, folder / f"performance-{workload.plot}.svg")


def draw(figures, workload, file):
    """A panel for each test, a bar for each peer."""
    peers = peers_of(figures, workload)
    chart, panels = plt.subplots(
        1, len(workload.tests), figsize=(9, 0.6 + 0.45 * len(peers)), sharey=True, sharex=True, layout="constrained", squeeze=False
    )
    for axes, (test, title) in zip(panels[0], workload.tests.items()):
        for place, peer in enumerate(peers):
            values = [value * workload.scale for value in figures.values(peer, test, workload.metric).values()]
            if not values:
                continue
            colour = next((COLOURS[name] for name in COLOURS if peer.startswith(name)), COLOURS["floor"])
            axes.barh(place, figures.figure(peer, test, workload.metric).median * workload.scale, 0.6, color=colour, alpha=0.55)
            axes.plot(values, [place] * len(values), ".", color=colour, markersize=5)
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
