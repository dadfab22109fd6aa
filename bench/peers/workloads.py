"""The applications that are measured, as items of peers.py, and how their tables read.

To add one: a function that returns its items, and a Workload. A row of its table is a peer, a column a test.
"""

import json

from install import BIN, ROOT
from peers import MPIS, Command, Item
from workload import Workload

SIZE, ITERATIONS, CHECK_EVERY, OMEGA = 2000, 300, 50, 1.9968
# Width, height and iterations or samples of the pictures: what a core computes in one to two seconds.
MANDELBROT = (1600, 1200, 2000)
RAYTRACE = (480, 270, 4)
# What is seen of the map: the region, and the scale. The first three are shown in 600 × 600 pixels.
VIEWS = {
    "2 tiles, 1:1": ((4500, 4500, 600, 600), 1),
    "30 tiles, 1:4": ((3600, 3600, 2400, 2400), 0.25),
    "300 tiles, 1:16": ((0, 0, 9600, 9600), 0.0625),
    "30 tiles, 1:1": ((3600, 3600, 2400, 2400), 1),
}
VIEW_REPEATS = 11
# Drawing the tiles takes longer than showing them.
VIEW_ROUNDS = 3
BOUND_THREADS = {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}
# Processes, threads in each.
TWO = {"2 processes × 1 thread": (2, 1), "1 process × 2 threads": (1, 2)}
SHAPES = {"1 process × 1 thread": (1, 1)} | TWO
PEERS = ("Open MPI 4, sm", "MPICH 4")
AT_ONCE = "Mizzen, two jobs at once"


def test_of(application, shape):
    """The name of what an application does in a shape."""
    processes, threads = shape
    return f"{application} {processes}×{threads}"


def columns(application, shapes, metric):
    return {head: (test_of(application, shape), metric) for head, shape in shapes.items()}


def views(shape):
    return {view: (test_of("map", shape), f"{view} 0") for view in VIEWS}


SAME = (
    "All are compiled for any x86-64, and all compute the same picture, bit for bit: that is checked in every run. × is the ratio to "
    "Mizzen's of the same round, so above 1 is slower than ours."
)
SHARED = (
    "The time from the call to the last pixel, times the cores that were used. Were nothing lost by sharing, that would "
    "always be the time of one process with one thread. Rank 0 of the MPI program hands out items and works itself; its threads "
    "share items by OpenMP."
)

WORKLOADS = [
    Workload(
        "Laplace's equation",
        f"A heated plate of {SIZE:,} × {SIZE:,} cells ([examples/laplace](../examples/laplace)), {ITERATIONS} iterations of "
        f"red-black Gauss-Seidel, an agreement of all every {CHECK_EVERY}; and the same program in C over MPI "
        "(`bench/peers/c/laplace.c`), whose threads share memory where ours send each other messages. All are compiled for "
        "any x86-64, each thread is bound to a core, and all compute the same plate, bit for bit: that is checked in every run. The "
        "time of one iteration; × is its ratio to Mizzen's of the same round, so above 1 is slower than ours.",
        columns("laplace", TWO, "iteration 0"), "ms", 1, "Mizzen", "laplace", "one iteration, ms",
    ),
    Workload(
        "The Mandelbrot set",
        f"The picture of [examples/mandelbrot](../examples/mandelbrot), {MANDELBROT[0]:,} × {MANDELBROT[1]:,} pixels of four points "
        f"and {MANDELBROT[2]:,} iterations, through the work pool; and the same in C over MPI (`bench/peers/c/mandelbrot.c`). "
        f"{SHARED} Two jobs of one process at once share nothing: theirs is what the machine itself loses when both cores are "
        f"busy. {SAME}",
        columns("mandelbrot", SHAPES, "core seconds"), "s", 1, "Mizzen", "mandelbrot", "seconds × cores",
    ),
    Workload(
        "Ray tracing",
        f"The scene of [examples/raytrace](../examples/raytrace), {RAYTRACE[0]} × {RAYTRACE[1]} pixels of {RAYTRACE[2]} rays, in tiles "
        f"of very different cost, through the work pool; and the same in C over MPI (`bench/peers/c/raytrace.c`). {SHARED} {SAME}",
        columns("raytrace", SHAPES, "core seconds"), "s", 1, "Mizzen", "raytrace", "seconds × cores",
    ),
    Workload(
        "A map, 2 processes",
        "Pictures of [examples/map](../examples/map), whose tiles are spread over the processes as JPEG files: rank 0 calls the "
        "holder of each tile, who decompresses and scales it; and the same in C over MPI (`bench/peers/c/map.c`), with "
        "requests and answers by hand, and with our code for drawing, decompressing and scaling, so that what is compared is "
        f"who works when, and what moves how. The time of a picture, the mean of {VIEW_REPEATS - 1} after a first one, in at most {VIEW_ROUNDS} "
        f"rounds. {SAME}",
        views((2, 1)), "ms", 1, "Mizzen",
    ),
    Workload(
        "A map, 1 process × 2 threads", "The same pictures, whose tiles are all in the process that shows them.",
        views((1, 2)), "ms", 1, "Mizzen",
    ),
]  # fmt: skip


def items():
    return laplace() + picture("mandelbrot", MANDELBROT) + picture("raytrace", RAYTRACE) + maps()


def told_by(output):
    """The lines of JSON. The launcher says whose each is."""
    return [json.loads(line[line.index("{") :]) for line in output.splitlines() if "{" in line]


def same(seen, told, *fields):
    """Notes what was computed; another result is the end."""
    seen.update(tuple(one[field] for field in fields) for one in told)
    if len(seen) > 1:
        raise SystemExit(f"the programs do not compute the same: {seen}")


def ours(application, processes, options, parse):
    words = [BIN / "mizzen", "run", "-n", processes, "--", ROOT / "target/release" / application]
    return Command([*words, *options], parse=parse)


def theirs(peer, application, shape, options, parse):
    processes, threads = shape
    launcher, bound, unbound, environment, binary, _ = MPIS[peer]
    # A process bound to a core would keep all its threads there: they are bound one by one.
    binding = bound if threads == 1 else unbound
    environment = environment | ({} if threads == 1 else BOUND_THREADS)
    words = [*launcher, *binding.split(), "-n", processes, BIN / f"{application}.{binary}"]
    return Command([*words, *options], environment, parse=parse)


def compared(application, shape, options_of_ours, options_of_theirs, parse, needs=(), rounds=None):
    """Ours, then all peers."""
    test = test_of(application, shape)
    command = ours(application, shape[0], options_of_ours, parse)
    found = [Item("Mizzen", test, [command], ("mizzen", "applications"), pinned=False, rounds=rounds)]
    for peer in PEERS:
        command = theirs(peer, application, shape, options_of_theirs, parse)
        program = (*MPIS[peer][5], f"{application}.{MPIS[peer][4]}", *needs)
        found.append(Item(peer, test, [command], program, pinned=False, rounds=rounds))
    return found


def laplace():
    """Test by test, all peers of a test one after the other."""
    plates = set()

    def parse(output):
        """Milliseconds of an iteration."""
        told = told_by(output)
        same(plates, told, "fingerprint", "iterations", "residual")
        return {"iteration 0": told[0]["seconds"] / told[0]["iterations"] * 1e3} if told else {}

    found = []
    for shape in TWO.values():
        options = f"--size {SIZE} --iterations {ITERATIONS} --check-every {CHECK_EVERY} --omega {OMEGA} --tolerance 0"
        options = [*options.split(), "--threads", shape[1], "--pin", "--json"]
        found += compared("laplace", shape, options, [SIZE, ITERATIONS, CHECK_EVERY, OMEGA, shape[1]], parse)
    return found


def picture(application, asked):
    """The same picture, by one and by two."""
    pictures = set()

    def parse(output):
        """Seconds of a core for a picture. Two jobs at once make one picture each."""
        told = told_by(output)
        same(pictures, told, "fingerprint")
        times = [one["seconds"] * one["ranks"] * one["threads"] for one in told]
        return {"core seconds": sum(times) / len(times)} if times else {}

    third = {"mandelbrot": "--iterations", "raytrace": "--samples"}[application]
    options = ["--width", asked[0], "--height", asked[1], third, asked[2], "--json", "--threads"]
    found = []
    for shape in SHAPES.values():
        found += compared(application, shape, [*options, shape[1]], [*asked, shape[1]], parse)
    if application == "mandelbrot":
        alone = str(ours(application, 1, [*options, 1], parse))
        at_once = Command(["sh", "-c", f"{alone} & {alone}; wait"], parse=parse)
        found.append(Item(AT_ONCE, test_of(application, (2, 1)), [at_once], ("mizzen", "applications"), pinned=False))
    return found


def maps():
    """All views of the map: a command draws it, and shows each view so often."""
    seen = {view: set() for view in VIEWS}

    def parse(output):
        """Milliseconds of a picture."""
        found = {}
        for view, told in zip(VIEWS, told_by(output)):
            same(seen[view], [told], "fingerprint")
            found[f"{view} 0"] = told["seconds"] * 1e3
        return found

    regions = [(",".join(map(str, region)), scale) for region, scale in VIEWS.values()]
    wishes = [word for region, scale in regions for word in ("--region", region, "--scale", scale)]
    found = []
    for shape in TWO.values():
        options = [*wishes, "--repeat", VIEW_REPEATS, "--json"]
        asked = [shape[1], VIEW_REPEATS, *(f"{region},{scale}" for region, scale in regions)]
        found += compared("map", shape, options, asked, parse, ("tiles",), VIEW_ROUNDS)
    return found
