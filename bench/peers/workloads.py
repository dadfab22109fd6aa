"""The applications that are measured, as items of peers.py, and how their tables read.

To add one: a function that returns its items, and a Workload. A row of its table is a peer, a column a test.
"""

import json

from install import BIN, ROOT
from peers import MPIS, Command, Item
from workload import Workload

SIZE, ITERATIONS, CHECK_EVERY, OMEGA = 2000, 300, 50, 1.9968
BOUND_THREADS = {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}
# Test: processes, threads in each.
SHAPES = {"laplace 2×1": (2, 1), "laplace 1×2": (1, 2)}
# Who shares the work of a picture: processes, threads in each. The first is what the others are compared with.
ALONE = "Mizzen, 1 process × 1 thread"
SHARED = {ALONE: (1, 1), "Mizzen, 2 processes × 1 thread": (2, 1), "Mizzen, 1 process × 2 threads": (1, 2)}


WORKLOADS = [
    Workload(
        "Laplace's equation",
        f"A heated plate of {SIZE:,} × {SIZE:,} cells ([examples/laplace](../examples/laplace)), {ITERATIONS} iterations of "
        f"red-black Gauss-Seidel, an agreement of all every {CHECK_EVERY}; and the same program in C over MPI "
        "(`bench/peers/c/laplace.c`), whose threads share memory where ours send each other messages. All are compiled for "
        "any x86-64, each thread is bound to a core, and all compute the same plate, bit for bit: that is checked in every run. The "
        "time of one iteration; × is its ratio to Mizzen's of the same round, so above 1 is slower than ours.",
        {"2 processes × 1 thread": ("laplace 2×1", "iteration 0"), "1 process × 2 threads": ("laplace 1×2", "iteration 0")},
        "ms", 1, "Mizzen", "laplace", "one iteration, ms",
    ),
    Workload(
        "The Mandelbrot set",
        "The picture of [examples/mandelbrot](../examples/mandelbrot), 1,600 × 1,200 pixels of four points and 2,000 iterations, "
        "through the work pool: the time from the call to the last pixel, times the cores that were used. Were nothing lost by "
        "sharing, that would always be the time of one process with one thread; × is the ratio to it in the same round. Two jobs "
        "of one process at once share nothing: theirs is what the machine itself loses when both cores are busy. All "
        "compute the same picture; that is checked in every run.",
        {"seconds × cores": ("mandelbrot", "core seconds")},
        "s", 1, ALONE, "mandelbrot", "seconds × cores",
    ),
]  # fmt: skip


def items():
    return laplace() + mandelbrot()


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


def mandelbrot():
    """The same picture, by one and by two."""
    pictures = set()

    def parse(output):
        """Seconds of a core for a picture. Two jobs at once make one picture each."""
        told = [json.loads(line[line.index("{") :]) for line in output.splitlines() if "{" in line]
        pictures.update(one["fingerprint"] for one in told)
        if len(pictures) > 1:
            raise SystemExit(f"the pictures differ: {pictures}")
        times = [one["seconds"] * one["ranks"] * one["threads"] for one in told]
        return {"core seconds": sum(times) / len(times)} if times else {}

    def words(processes, threads):
        program = [ROOT / "target/release/mandelbrot", "--threads", threads, "--json"]
        return [str(word) for word in [BIN / "mizzen", "run", "-n", processes, "--", *program]]

    def item(peer, command):
        return Item(peer, "mandelbrot", [Command(command, parse=parse)], ("mizzen", "applications"), pinned=False)

    alone = " ".join(words(1, 1))
    at_once = item("two jobs at once", ["sh", "-c", f"{alone} & {alone}; wait"])
    return [item(peer, words(*shape)) for peer, shape in SHARED.items()] + [at_once]
