"""Reads results.json: medians and spreads over the rounds, and ratios to the floor of the same round."""

import json
import statistics
from dataclasses import dataclass

from measure import RESULTS


@dataclass
class Figure:
    """One figure over the rounds."""

    median: float
    least: float
    most: float
    rounds: int

    @classmethod
    def of(cls, values):
        return cls(statistics.median(values), min(values), max(values), len(values)) if values else None

    def overlaps(self, other):
        return self.least <= other.most and other.least <= self.most


class Figures:
    def __init__(self, file=RESULTS):
        self.data = json.loads(file.read_text())
        self.runs = {}
        for run in self.data["runs"]:
            peer, test, *_ = run["item"].split(" / ")
            self.runs.setdefault(test, {}).setdefault(peer, []).append(run)

    def peers(self, test, metric):
        """Who has this figure, in the order in which they were measured."""
        named = self.runs.get(test, {})
        return [peer for peer in named if self.values(peer, test, metric)]

    def values(self, peer, test, metric):
        """Round: figure."""
        runs = self.runs.get(test, {}).get(peer, [])
        return {run["round"]: run["values"][metric] for run in runs if metric in run["values"]}

    def figure(self, peer, test, metric):
        return Figure.of(list(self.values(peer, test, metric).values()))

    def ratio(self, peer, test, metric, floor):
        """To the line measured around the run itself (`line`), or to what the floor of that name did in that round."""
        if floor == "line":
            runs = self.runs.get(test, {}).get(peer, [])
            return Figure.of(
                [run["values"][metric] / statistics.mean(run["line"]) for run in runs if metric in run["values"]]
            )
        below = self.values(floor, test, metric)
        values = self.values(peer, test, metric)
        return Figure.of([value / below[number] for number, value in values.items() if number in below])

    def lines(self):
        """All calibrations, ns."""
        return sorted(value for run in self.data["runs"] for value in run["line"])

    def failures(self):
        """Item: messages of the runs that failed, and how many runs there were."""
        found = {}
        for run in self.data["runs"]:
            total, messages = found.get(run["item"], (0, []))
            found[run["item"]] = (total + 1, messages + [run["error"]] if run.get("error") else messages)
        return {item: entry for item, entry in found.items() if entry[1]}
