"""The section "Applications" of docs/performance.md, from applications.json."""

import subprocess
import textwrap

from figures import Figures
from install import HERE, ROOT, VENV
from workloads import WORKLOADS

DATA = HERE / "applications.json"
DOCUMENT = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "images"
BEGIN = "<!-- Applications: written by bench/peers/applications -->"
END = "<!-- end of Applications -->"
# Where the section goes in a document that has none.
BEFORE = "## Where a peer is better"


def applications():
    """The section between its marks; nothing if nothing was measured."""
    if not DATA.exists():
        return ""
    figures = Figures(DATA)
    draw()
    parts = [BEGIN, "## Applications", head(figures)]
    for workload in WORKLOADS:
        if not peers_of(figures, workload):
            continue
        parts += [f"### {workload.title}", textwrap.fill(workload.text, 120, break_on_hyphens=False)]
        parts += [table(figures, workload), image(workload)]
    return "\n\n".join(part for part in [*parts, END] if part)


def write():
    """Puts the section into the document and leaves the rest alone."""
    text, section = DOCUMENT.read_text(), applications()
    if BEGIN in text:
        text = text[: text.index(BEGIN)] + section + text[text.index(END) + len(END) :]
    else:
        text = text.replace(BEFORE, f"{section}\n\n{BEFORE}", 1)
    DOCUMENT.write_text(text)
    print(f"wrote the section Applications of {DOCUMENT.relative_to(ROOT)}")


def head(figures):
    runs = figures.data["runs"]
    dates = sorted(run["date"] for run in runs)
    first, last = (date[:16].replace("T", " ") for date in (dates[0], dates[-1]))
    disturbed = sum(1 for run in runs if run.get("disturbed"))
    failed = sum(1 for run in runs if run.get("error"))
    text = (
        f"Whole programs, alternately, {1 + max(run['round'] for run in runs)} rounds from {first} to {last} UTC, written by "
        "`bench/peers/applications` from [applications.json](../bench/peers/applications.json): the median, and in parentheses "
        f"the least and the most. Of {len(runs)} runs {disturbed} stayed disturbed by other programs or by a changing machine, "
        f"and are included; {failed} failed."
    )
    return textwrap.fill(text, 120, break_on_hyphens=False)


def peers_of(figures, workload):
    """Who was measured, ours first."""
    found = dict.fromkeys(peer for test in workload.tests for peer in figures.peers(test, workload.metric))
    return list(found)


def table(figures, workload):
    # render.py imports this module; what they share is there.
    from render import bold, cell

    lines = [f"| | {' | '.join(f'{head}, {workload.unit} | ×' for head in workload.tests.values())} |"]
    lines.append("| --- |" + " ---: | ---: |" * len(workload.tests))
    for peer in peers_of(figures, workload):
        cells = []
        for test in workload.tests:
            ratio = figures.ratio(peer, test, workload.metric, workload.reference)
            cells += [cell(figures.figure(peer, test, workload.metric), workload.scale), cell(ratio, 1)]
        lines.append(f"| {bold(peer)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw():
    """The plots; without matplotlib, those that are there stay."""
    python = VENV / "matplotlib/bin/python"
    if python.exists():
        subprocess.run([python, HERE / "plot_applications.py", IMAGES], check=True)


def image(workload):
    file = f"performance-{workload.plot}.svg"
    return f"![{workload.title}: {workload.label}](images/{file})" if (IMAGES / file).exists() else ""
