"""The collective operations that are measured, as items of peers.py, and how their tables read."""

import json

from install import BIN
from peers import MPIS, Command, Item, printed
from workload import Workload

RANKS = (2, 4, 8)
KIB, MIB = 1 << 10, 1 << 20
SIZES = {8: "8 B", 64 * KIB: "64 KiB", MIB: "1 MiB"}
OURS = "Mizzen"
# Some libraries need seconds for one operation when ranks are more than cores: the program ends itself, and if it cannot, it is ended.
SECONDS = 8
TIMEOUT = 14
# A rank that waits gives its core away, also where the library would not do so by itself.
YIELD = "--mca mpi_yield_when_idle 1".split()
YIELDING = ("Open MPI 5, sm", "Open MPI 5, UCX")


def columns(metric):
    return {f"{ranks} ranks": (f"{ranks} ranks", metric) for ranks in RANKS}


def workload(title, text, metric, **more):
    return Workload(title, text, columns(metric), "µs", 1e-3, OURS, **more)


def of_data(title, text, metric, plotted):
    """A table for each size, one of them with a plot."""
    found = []
    for size, name in SIZES.items():
        plot = {"plot": f"{metric}-{size}", "label": f"{title.lower()} of {name}, µs", "logarithmic": True}
        found.append(workload(f"{title} of {name}", text if not found else "", f"{metric} {size}", **(plot if size == plotted else {})))
    return found


WORKLOADS = [
    workload("Barrier", "", "barrier 0", plot="barrier", label="barrier, µs", logarithmic=True),
    *of_data("Broadcast", "The root changes with every operation: a loop with one root would measure how fast that one gets rid of its data.", "broadcast", 64 * KIB),
    *of_data("All-reduce", "The sum of 64-bit floating-point numbers, in place.", "all-reduce", MIB),
]


def items():
    """Ours and all MPIs, for each number of ranks one after the other."""
    found = []
    for ranks in RANKS:
        found.append(Item(OURS, f"{ranks} ranks", [ours("barrier,broadcast,all-reduce", ranks)], ("mizzen",), pinned=False))
        found.append(Item(f"{OURS}, lent", f"{ranks} ranks", [ours("broadcast-lent,all-reduce-lent", ranks)], ("mizzen",), pinned=False))
        if ranks > 4:
            threads = ours("barrier,broadcast,all-reduce", 2, ranks // 2)
            found.append(Item(f"{OURS}, 2 × {ranks // 2} threads", f"{ranks} ranks", [threads], ("mizzen",), pinned=False))
        for peer in MPIS:
            found.append(of(peer, peer, ranks, []))
            if peer in YIELDING:
                found.append(of(f"{peer}, yield", peer, ranks, YIELD))
    return found


def of(name, peer, ranks, more):
    needs = (*MPIS[peer][5], f"collectives.{MPIS[peer][4]}")
    # What takes milliseconds for a barrier need not be measured often.
    rounds = 2 if peer.startswith("MPICH") and ranks > 2 else None
    return Item(name, f"{ranks} ranks", [theirs(peer, ranks, more)], needs, pinned=False, rounds=rounds)


def ours(operations, ranks, threads=None):
    options = f"--op {operations} --sizes {','.join(map(str, SIZES))} --ranks {ranks} --runs 5 --json"
    options += f" --threads {threads}" if threads else ""
    return Command([BIN / "mizzen", "bench", "collectives", *options.split()], parse=figures, timeout=30)


def figures(output):
    """From the JSON lines of `mizzen bench --json`."""
    lines = [json.loads(line) for line in output.splitlines()]
    return {f"{line['operation'].removesuffix('-lent')} {line['size']}": line["value"] for line in lines}


def theirs(peer, ranks, more):
    launcher, bound, unbound, environment, binary, _ = MPIS[peer]
    binding = bound if ranks == 2 else unbound
    program = BIN / f"collectives.{binary}"
    words = [*launcher, *more, *binding.split(), "-n", ranks, program, SECONDS]
    return Command(words, environment, parse=dashed, timeout=TIMEOUT)


def dashed(output):
    """The names of C have no dashes."""
    return {name.replace("_", "-"): value for name, value in printed(output).items()}
