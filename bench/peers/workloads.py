"""The applications that are measured, as items of peers.py, and how their tables read.

To add one: a function that returns its items, and a Workload. A row of its table is a peer, a column a test.
"""

import json
from dataclasses import dataclass

from install import BIN, ROOT
from peers import MPIS, Command, Item

SIZE, ITERATIONS, CHECK_EVERY, OMEGA = 2000, 300, 50, 1.9968
BOUND_THREADS = {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}
# Test: processes, threads in each.
SHAPES = {"laplace 2×1": (2, 1), "laplace 1×2": (1, 2)}


@dataclass
class Workload:
    title: str
    text: str
    # Test: the head of its column.
    tests: dict
    metric: str
    unit: str
    scale: float
    # × in the table is the ratio to this peer in the same round.
    reference: str
    # The plot's name, and the label of its axis.
    plot: str
    label: str


WORKLOADS = [
    Workload(
        "Laplace's equation",
        f"A heated plate of {SIZE:,} × {SIZE:,} cells ([examples/laplace](../examples/laplace)), {ITERATIONS} iterations of "
        f"red-black Gauss-Seidel, an agreement of all every {CHECK_EVERY}; and the same program in C over MPI "
        "(`bench/peers/c/laplace.c`), whose threads share memory where ours send each other messages. All are compiled for "
        "any x86-64, each thread is bound to a core, and all compute the same plate, bit for bit: that is checked in every run. The "
        "time of one iteration; × is its ratio to Mizzen's of the same round, so above 1 is slower than ours.",
        {"laplace 2×1": "2 processes × 1 thread", "laplace 1×2": "1 process × 2 threads"},
        "iteration 0", "ms", 1, "Mizzen", "laplace", "one iteration, ms",
    ),
]  # fmt: skip


def items():
    return laplace()


def laplace():
    """Test by test, all peers of a test one after the other."""
    plates = set()

    def parse(output):
        """Milliseconds of an iteration."""
        # The launcher says whose line it is.
        line = next((line[line.index("{") :] for line in output.splitlines() if "{" in line), None)
        if not line:
            return {}
        told = json.loads(line)
        plates.add((told["fingerprint"], told["iterations"], told["residual"]))
        if len(plates) > 1:
            raise SystemExit(f"the programs do not compute the same plate: {plates}")
        return {"iteration 0": told["seconds"] / told["iterations"] * 1e3}

    def ours(processes, threads):
        options = f"--size {SIZE} --iterations {ITERATIONS} --check-every {CHECK_EVERY} --omega {OMEGA} --tolerance 0"
        words = [BIN / "mizzen", "run", "-n", processes, "--", ROOT / "target/release/laplace", *options.split()]
        return Command([*words, "--threads", threads, "--pin", "--json"], parse=parse)

    def theirs(peer, processes, threads):
        launcher, bound, unbound, environment, binary, _ = MPIS[peer]
        # A process bound to a core would keep all its threads there: they are bound one by one.
        binding = bound if threads == 1 else unbound
        environment = environment | ({} if threads == 1 else BOUND_THREADS)
        words = [*launcher, *binding.split(), "-n", processes, BIN / f"laplace.{binary}"]
        return Command([*words, SIZE, ITERATIONS, CHECK_EVERY, OMEGA, threads], environment, parse=parse)

    found = []
    for test, (processes, threads) in SHAPES.items():
        found.append(Item("Mizzen", test, [ours(processes, threads)], ("mizzen", "applications"), pinned=False))
        for peer in ("Open MPI 4, sm", "MPICH 4"):
            needs = ("debian", f"laplace.{MPIS[peer][4]}")
            found.append(Item(peer, test, [theirs(peer, processes, threads)], needs, pinned=False))
    return found
