"""Draws one-way time and bandwidth over the size, as SVG (or PNG, to look at): plot.py FOLDER [svg|png]

Runs in the environment that install.py makes for matplotlib.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from figures import Figures

SIZES = [8, 32, 56, 64, 96, 128, 256, 512] + [count << 10 for count in (1, 2, 4, 8, 16, 32, 64, 256, 1024, 4096)]
# One colour a family, one dash a version.
COLOURS = {"floor": "0.45", "Mizzen": "#c1121f", "Open MPI": "#1d4e89", "MPICH": "#2a9d8f", "Intel MPI": "#7b2cbf"}
COLOURS |= {"UCX": "#e08e00", "libfabric": "#8a5a00", "iceoryx2": "#e75a9b", "ZeroMQ": "#5c8001", "NNG": "#9aa600"}
COLOURS |= {"ipc-channel": "#6d4c41"}
DASHES = ["-", "--", ":", "-."]


def main():
    folder = Path(sys.argv[1])
    kind = sys.argv[2] if len(sys.argv) > 2 else "svg"
    folder.mkdir(parents=True, exist_ok=True)
    # The same data gives the same file.
    plt.rcParams |= {"svg.hashsalt": "performance", "font.size": 9, "svg.fonttype": "none", "font.family": "sans-serif"}
    figures = Figures()
    time = {peer: over_sizes(figures, peer, "lat", 1e-3) for peer in peers(figures, "lat")}
    time["Mizzen, handed over"] = handed_over(figures, "Mizzen")
    time["iceoryx2, handed over"] = handed_over(figures, "iceoryx2")
    draw(time, "one way, echoed, µs", folder / f"performance-latency.{kind}", best_first=1)
    speed = {peer: over_sizes(figures, peer, "bw", 1e-9) for peer in peers(figures, "bw")}
    draw(speed, "stream, GB/s", folder / f"performance-bandwidth.{kind}", best_first=-1)


def peers(figures, metric):
    return figures.peers("copies", f"{metric} {64 << 10}")


def over_sizes(figures, peer, metric, scale):
    points = []
    for size in SIZES:
        figure = figures.figure(peer, "small" if size < 1024 else "copies", f"{metric} {size}")
        if figure:
            points.append((size, figure.median * scale))
    return points


def handed_over(figures, peer):
    found = [(size, figures.figure(peer, "hand", f"hand {size}")) for size in (64 << 10, 1 << 20)]
    return [(size, figure.median * 1e-3) for size, figure in found if figure]


def draw(lines, label, file, best_first):
    """Above the figures, below their ratios to the floor. The legend is in the order of the lines at 64 KiB."""
    lines = {peer: points for peer, points in lines.items() if points}
    if not lines:
        return
    chart, (above, below) = plt.subplots(2, 1, figsize=(9, 9), sharex=True, layout="constrained")
    floor = dict(lines.get("floor", []))
    styles = line_styles(lines)
    for peer in sorted(lines, key=lambda peer: dict(lines[peer]).get(64 << 10, 0) * best_first):
        colour, dash = styles[peer]
        ours = peer.startswith("Mizzen")
        style = {"color": colour, "marker": ".", "linewidth": 2.6 if ours else 1.2, "zorder": 3 if ours else 2}
        above.plot(*zip(*lines[peer]), dash, label=peer, **style)
        ratios = [(size, value / floor[size]) for size, value in lines[peer] if size in floor]
        if ratios:
            below.plot(*zip(*ratios), dash, **style)
    above.set_yscale("log")
    above.set_ylabel(label)
    below.set_yscale("log")
    below.set_ylabel("times the floor")
    # Who is further away than this can be seen above.
    below.set_ylim((0.5, 8) if best_first > 0 else (0.3, 2))
    below.set_xscale("log", base=2)
    below.set_xticks([8, 64, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20])
    below.set_xticklabels(["8 B", "64 B", "1 KiB", "8 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB"])
    below.set_xlim(left=0.8 * min(size for points in lines.values() for size, _ in points))
    for axes in (above, below):
        axes.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        axes.grid(True, which="major", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    below.yaxis.set_major_locator(matplotlib.ticker.LogLocator(base=2))
    chart.legend(loc="outside right upper", frameon=False)
    chart.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(chart)


def line_styles(peers):
    """Peer: colour and dash."""
    used, styles = {}, {}
    for peer in peers:
        family = next((name for name in COLOURS if peer.startswith(name)), "floor")
        styles[peer] = (COLOURS[family], DASHES[used.setdefault(family, 0) % len(DASHES)])
        used[family] += 1
    return styles


if __name__ == "__main__":
    main()
