"""Sections of docs/performance.md that have a command, and a file of runs, of their own."""

import subprocess
import textwrap
from dataclasses import dataclass

import operations
import workloads
from figures import Figures
from install import HERE, ROOT, VENV

DOCUMENT = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "images"
# Where a section goes in a document that has none.
BEFORE = "## Where a peer is better"


@dataclass
class Section:
    title: str
    # Its name, and that of its file of runs.
    command: str
    # What it measures, as the beginning of a sentence.
    what: str
    workloads: list
    items: callable
    # What must be there.
    needs: tuple

    @property
    def data(self):
        return HERE / f"{self.command}.json"

    @property
    def begin(self):
        return f"<!-- {self.title}: written by bench/peers/{self.command} -->"

    @property
    def end(self):
        return f"<!-- end of {self.title} -->"

    def text(self):
        """The section between its marks; nothing if nothing was measured."""
        if not self.data.exists():
            return ""
        figures = Figures(self.data)
        draw(self)
        parts = [self.begin, f"## {self.title}", self.head(figures)]
        for workload in self.workloads:
            if not peers_of(figures, workload):
                continue
            parts += [f"### {workload.title}", textwrap.fill(workload.text, 120, break_on_hyphens=False)]
            parts += [table(figures, workload), image(workload)]
        return "\n\n".join(part for part in [*parts, self.end] if part)

    def head(self, figures):
        runs = figures.data["runs"]
        dates = sorted(run["date"] for run in runs)
        first, last = (date[:16].replace("T", " ") for date in (dates[0], dates[-1]))
        disturbed = sum(1 for run in runs if run.get("disturbed"))
        failed = sum(1 for run in runs if run.get("error"))
        text = (
            f"{self.what}, {1 + max(run['round'] for run in runs)} rounds from {first} to {last} UTC, written by "
            f"`bench/peers/{self.command}` from [{self.data.name}](../bench/peers/{self.data.name}): the median, and in parentheses "
            f"the least and the most. Of {len(runs)} runs {disturbed} stayed disturbed by other programs or by a changing machine, "
            f"and are included; {failed} failed."
        )
        return textwrap.fill(text, 120, break_on_hyphens=False)

    def write(self):
        """Puts the section into the document and leaves the rest alone."""
        text, section = DOCUMENT.read_text(), self.text()
        if self.begin in text:
            text = text[: text.index(self.begin)] + section + text[text.index(self.end) + len(self.end) :]
        else:
            text = text.replace(BEFORE, f"{section}\n\n{BEFORE}", 1)
        DOCUMENT.write_text(text)
        print(f"wrote the section {self.title} of {DOCUMENT.relative_to(ROOT)}")


APPLICATIONS = Section(
    "Applications",
    "applications",
    "Whole programs, alternately",
    workloads.WORKLOADS,
    workloads.items,
    ("floor", "mizzen", "applications"),
)
GROUPS = Section(
    "Groups",
    "collectives",
    "Collective operations of processes on one host, the time of one at the slowest of them. Two ranks are bound to a core each, more are "
    "not bound. × is the ratio to Mizzen's of the same round, so above 1 is slower than ours. A figure that is missing took longer than "
    f"{operations.SECONDS} s with what was before it. Measured alternately",
    operations.WORKLOADS,
    operations.items,
    ("floor", "mizzen"),
)
SECTIONS = (APPLICATIONS, GROUPS)


def peers_of(figures, workload):
    """Who was measured, ours first."""
    found = dict.fromkeys(peer for test, metric in workload.columns.values() for peer in figures.peers(test, metric))
    return list(found)


def table(figures, workload):
    # render.py imports this module; what they share is there.
    from render import bold, cell

    lines = [f"| | {' | '.join(f'{head}, {workload.unit} | ×' for head in workload.columns)} |"]
    lines.append("| --- |" + " ---: | ---: |" * len(workload.columns))
    for peer in peers_of(figures, workload):
        cells = []
        for test, metric in workload.columns.values():
            ratio = figures.ratio(peer, test, metric, workload.reference)
            cells += [cell(figures.figure(peer, test, metric), workload.scale), cell(ratio, 1)]
        lines.append(f"| {bold(peer)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(section):
    """The plots; without matplotlib, those that are there stay."""
    python = VENV / "matplotlib/bin/python"
    if python.exists():
        subprocess.run([python, HERE / "plot_section.py", IMAGES, section.command], check=True)


def image(workload):
    file = f"performance-{workload.plot}.svg"
    return f"![{workload.title}: {workload.label}](images/{file})" if workload.plot and (IMAGES / file).exists() else ""
