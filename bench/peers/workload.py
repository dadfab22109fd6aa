"""What a section of docs/performance.md compares: a table, and perhaps a plot. A row is a peer."""

from dataclasses import dataclass


@dataclass
class Workload:
    title: str
    text: str
    # The head of a column: its test and its metric.
    columns: dict
    unit: str
    scale: float
    # × in the table is the ratio to this peer in the same round.
    reference: str
    # The plot's name, and the label of its axes; without a name there is none.
    plot: str = ""
    label: str = ""
    # Whether each column has an axis of its own, by powers of ten: then there are no bars, which would begin nowhere.
    logarithmic: bool = False
