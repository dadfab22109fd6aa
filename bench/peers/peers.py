"""Who is compared, and the commands that measure them.

An item is one peer in one test. To add a peer: write a program that prints `R <metric> <size> <value>` (c/pingpong.h,
rust/common), name the step that builds it in install.py, and add its items here; tables and plots follow.

Metrics, and their units in results.json: lat, sep, hand, asleep, lanes (ns one way), rate (messages/s), bw (bytes/s),
threads (messages/s of all pairs), worst (slowest pair, times the median one), gap (longest wait, ns), idle (CPU %), start
(s), rtt (ns). c/pingpong.h says how the first ones are measured.
"""

import json
import re
from dataclasses import dataclass, field

from install import BIN, RUST, VENV, debian_version

SMALL = "8,32,56,64,96,128,256,512"
LARGE = "1K,2K,4K,8K,16K,32K,64K,256K,1M,4M"
START_PROCESSES = 64


def printed(output):
    """`R <metric> <size> <value>`."""
    lines = re.findall(r"^R (\w+) (\d+) (\S+)$", output, re.M)
    return {f"{metric} {size}": float(value) for metric, size, value in lines}


@dataclass
class Command:
    words: list
    environment: dict = field(default_factory=dict)
    server: list = None
    parse: callable = printed
    # The whole command's wall time is a figure of this name.
    times: str = ""
    timeout: float = 25

    def __str__(self):
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        server = f"{' '.join(map(str, variables + self.server))} & " if self.server else ""
        return server + " ".join(map(str, variables + self.words))


@dataclass
class Item:
    peer: str
    test: str
    commands: list
    needs: tuple
    pinned: bool = True
    # Fewer rounds for what takes long and hardly varies.
    rounds: int = None
    # Tells items of the same peer and test apart.
    part: str = ""

    @property
    def name(self):
        return " / ".join(filter(None, (self.peer, self.test, self.part)))


def items():
    """All, test after test, so that what is compared is measured within the same minutes."""
    found = floors() + ours() + mpis() + mpis_over_tcp() + ucx() + libfabric() + iceoryx() + zeromq() + others()
    tests = list(dict.fromkeys(item.test for item in found))
    return sorted(found, key=lambda item: tests.index(item.test))


def floors():
    def floor(test, *words, peer="floor", **more):
        return Item(peer, test, [Command([BIN / "floor", *words])], ("floor",), **more)

    return [
        floor("small", "small"),
        floor("small threads", "small"),
        floor("small threads unbound", "small", pinned=False),
        floor("copies", "copies"),
        floor("threads", "threads", "yield", pinned=False, peer="floor, spin and yield"),
        floor("threads", "threads", "sleep", pinned=False, peer="floor, spin and sleep"),
        floor("asleep", "futex"),
        floor("start", "start", rounds=3, pinned=False),
        *(Item("floor", f"TCP {what}", [Command([BIN / "sockets", what])], ("sockets",)) for what in ("small", "copies")),
    ]


def ours():
    """`mizzen bench` measures its own floor beside each figure; here it is compared with the floor of all others."""

    def bench(*words, runs=3):
        return Command([BIN / "mizzen", "bench", *words, "--runs", runs, "--json"], parse=mizzen_figures)

    def item(peer, test, *commands, **more):
        return Item(peer, test, list(commands), ("mizzen",), **more)

    def small(path, *words):
        return (
            bench("latency", "--path", path, "--sizes", SMALL, *words, runs=5),
            bench("latency", "--path", path, "--sizes", SMALL, "--separate", *words, runs=5),
            bench("rate", "--path", path, "--sizes", "8", *words, runs=5),
        )

    def over_tcp(path):
        return {
            "small": [
                bench("latency", "--path", path, "--sizes", SMALL, runs=5),
                bench("rate", "--path", path, "--sizes", "8", runs=5),
            ],
            "copies": [bench(test, "--path", path, "--sizes", LARGE) for test in ("latency", "bandwidth")],
        }

    return [
        item("Mizzen", "small", *small("process")),
        item("Mizzen, post", "small", *small("process", "--post")),
        item("Mizzen", "small threads", *small("thread")),
        item("Mizzen, post", "small threads", *small("thread", "--post")),
        item("Mizzen", "small threads unbound", *small("thread", "--no-pin"), pinned=False),
        item(
            "Mizzen",
            "copies",
            bench("latency", "--path", "process", "--sizes", f"{LARGE},64M"),
            bench("latency", "--path", "process", "--sizes", f"{LARGE},64M", "--separate"),
            bench("bandwidth", "--path", "process", "--sizes", LARGE),
        ),
        item("Mizzen", "hand", bench("latency", "--path", "process", "--sizes", "64K,1M", "--lent")),
        # Preparing enough buffers of this size takes seconds.
        item(
            "Mizzen",
            "hand",
            bench("latency", "--path", "process", "--sizes", "64M", "--lent", runs=1),
            rounds=3,
            part="64 MiB",
        ),
        item("Mizzen", "threads", bench("threads", "--path", "process", "--threads", "1,2,4,8", runs=1), pinned=False),
        item("Mizzen", "asleep", bench("latency", "--path", "process", "--sizes", "8", "--asleep")),
        item("Mizzen", "lanes", bench("latency", "--path", "process", "--sizes", "8", "--idle-lanes", 1000)),
        item("Mizzen", "rpc", bench("rpc", "--path", "process", "--sizes", "0,8,1K,64K,1M,4M"), rounds=5),
        item("Mizzen, TCP", "rpc", bench("rpc", "--path", "tcp", "--sizes", "0,8,1K,64K,1M,4M"), rounds=5),
        *(item(peer, f"TCP {what}", *over_tcp(path)[what]) for peer, path in OVER_TCP for what in ("small", "copies")),
        item("Mizzen", "idle", bench("idle", "--processes", 2, runs=1), rounds=3),
        item("Mizzen", "start", bench("startup", "--processes", START_PROCESSES, runs=1), rounds=3, pinned=False),
    ]


# As a network that is declared trusted, and as any other.
OVER_TCP = (("Mizzen", "tcp"), ("Mizzen, TLS", "tls"))


def mizzen_figures(output):
    """From the JSON lines of `mizzen bench --json`."""
    values = {}
    for line in output.splitlines():
        figure = json.loads(line)
        variant = figure["variant"].split(",")
        size = figure["size"]
        if figure["test"] == "latency":
            named = {"asleep": "asleep", "lent": "hand", "separate": "sep", "idle-lanes=1000": "lanes"}
            metric = next((metric for word, metric in named.items() if word in variant), "lat")
            values[f"{metric} {size}"] = figure["value"]
        elif figure["test"] == "rpc":
            values[f"rtt {size}"] = figure["value"]
        elif figure["test"] == "threads":
            threads = figure["threads"]
            values[f"threads {threads}"] = figure["rate_per_s"]
            values[f"worst {threads}"] = figure["worst"]
            values[f"gap {threads}"] = figure["longest_gap_ns"]
        else:
            metric = {"rate": "rate", "bandwidth": "bw", "idle": "idle", "startup": "start"}[figure["test"]]
            values[f"{metric} {size or (START_PROCESSES if metric == 'start' else 0)}"] = figure["value"]
    return values


# Shared memory through UCX. Without a network adapter Open MPI takes UCX only if told so.
THROUGH_UCX = "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=self,sm".split()
# Its own shared memory.
OWN4 = "--mca pml ob1 --mca btl self,vader".split()
OWN5 = "--mca pml ob1 --mca btl self,sm".split()
OPENMPI = "--allow-run-as-root --oversubscribe".split()
OPENMPI4 = ["mpirun.openmpi", *OPENMPI, "--mca", "btl_base_warn_component_unused", 0]
OPENMPI5 = [VENV / "openmpi/bin/mpirun", *OPENMPI]
INTEL = VENV / "impi-rt"

# Peer: launcher, options to bind each process to a core and not to, environment, program, needs.
MPIS = {
    "Open MPI 4, sm": ([*OPENMPI4, *OWN4], "--bind-to core", "--bind-to none", {}, "openmpi4", ("debian",)),
    "Open MPI 4, UCX": ([*OPENMPI4, *THROUGH_UCX], "--bind-to core", "--bind-to none", {}, "openmpi4", ("debian",)),
    "Open MPI 5, sm": ([*OPENMPI5, *OWN5], "--bind-to core", "--bind-to none", {}, "openmpi5", ("openmpi",)),
    "Open MPI 5, UCX": ([*OPENMPI5, *THROUGH_UCX], "--bind-to core", "--bind-to none", {}, "openmpi5", ("openmpi",)),
    "MPICH 4": (["mpirun.mpich"], "-bind-to core", "", {}, "mpich4", ("debian",)),
    "MPICH 5": ([VENV / "mpich/bin/mpiexec.hydra"], "-bind-to core", "", {}, "mpich5", ("mpich",)),
    # Runs the program linked with MPICH 5: their binary interfaces agree.
    "Intel MPI": (
        [INTEL / "bin/mpiexec.hydra"], "-genv I_MPI_PIN 1", "-genv I_MPI_PIN 0",
        {"I_MPI_ROOT": INTEL, "LD_LIBRARY_PATH": INTEL / "lib", "I_MPI_FABRICS": "shm"}, "mpich5", ("mpich", "impi-rt")),
}  # fmt: skip

# The same over TCP. Of networks that several libraries can use, the name says which does.
BTL_TCP = "--mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include lo".split()
# MPICH 5 finds nobody if its UCX may use the loopback interface only.
UCX_TCP = {"UCX_TLS": "self,tcp", "UCX_WARN_UNUSED_ENV_VARS": "n"}
OFI_TCP = {"FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}
NOT_LOCAL = {"MPIR_CVAR_NOLOCAL": 1}
MPIS_OVER_TCP = {
    "Open MPI 4": ("Open MPI 4, sm", [*OPENMPI4, *BTL_TCP], {}),
    "Open MPI 5": ("Open MPI 5, sm", [*OPENMPI5, *BTL_TCP], {}),
    "MPICH 4": ("MPICH 4", None, UCX_TCP | {"UCX_NET_DEVICES": "lo"} | NOT_LOCAL),
    "MPICH 5, UCX": ("MPICH 5", None, UCX_TCP | NOT_LOCAL | {"MPIR_CVAR_CH4_NETMOD": "ucx"}),
    "MPICH 5, libfabric": ("MPICH 5", None, OFI_TCP | NOT_LOCAL | {"MPIR_CVAR_CH4_NETMOD": "ofi"}),
    "Intel MPI": ("Intel MPI", None, OFI_TCP | {"I_MPI_FABRICS": "ofi"}),
}


def mpis_over_tcp():
    found = []
    for peer, (alike, launcher, variables) in MPIS_OVER_TCP.items():
        usual, bound, _, environment, binary, needs = MPIS[alike]
        program = BIN / f"mpibench.{binary}"
        for what in ("small", "copies"):
            words = [*(launcher or usual), *bound.split(), "-n", 2, program, what]
            command = Command(words, environment | variables)
            found.append(Item(peer, f"TCP {what}", [command], (*needs, program.name)))
    return found


def mpis():
    found = []
    for peer, (launcher, bound, unbound, environment, binary, needs) in MPIS.items():

        def item(test, word, binding, count=2, **more):
            program = BIN / f"mpibench.{binary}"
            command = Command([*launcher, *binding.split(), "-n", count, program, word], environment)
            if test == "start":
                command.times = f"start {count}"
            return Item(peer, test, [command], (*needs, program.name), **more)

        found += [
            item("small", "small", bound),
            item("copies", "copies", bound),
            item("threads", "threads", unbound, pinned=False),
            item("rpc", "calls", bound, rounds=5),
            item("idle", "idle", bound, rounds=3),
            item("start", "null", unbound, START_PROCESSES, rounds=3, pinned=False),
        ]
    return found


def ucx():
    """UCX by our program, which echoes, and by its own ucx_perftest, which never rewrites what it sends."""
    shared = {"UCX_TLS": "self,sm", "UCX_NET_DEVICES": "all", "UCX_WARN_UNUSED_ENV_VARS": "n"}
    packages = VENV / "libucx-cu12/lib"
    newest = next(packages.glob("python3*/site-packages/libucx"), packages / "libucx")
    version = next((path.name.split("-")[1] for path in newest.parent.glob("libucx_cu12-*.dist-info")), "newest")
    found = []
    for version, perftest, environment, needs in (
        (debian_version("libucx-dev") or "of Debian", "ucx_perftest", shared, ("debian",)),
        (version, newest / "bin/ucx_perftest", {"LD_LIBRARY_PATH": newest / "lib"} | shared, ("debian", "libucx-cu12")),
    ):
        peer = "UCX " + ".".join(version.split(".")[:2])
        for what in ("small", "copies"):
            command = Command([BIN / "ucpbench", what], environment | UCX_TCP)
            found.append(Item(peer, f"TCP {what}", [command], (*needs, "ucpbench")))
        for test, files in (("small", ("small", "rate")), ("copies", ("copies",))):
            found.append(Item(peer, test, [Command([BIN / "ucpbench", test], environment)], (*needs, "ucpbench")))
            commands = [perftest_command(perftest, environment, file) for file in files]
            found.append(Item(f"{peer}, ucx_perftest", test, commands, needs))
        command = perftest_command(perftest, environment, "am")
        found.append(Item(f"{peer} active messages, ucx_perftest", "small", [command], needs))
    return found


SHORT = dict.fromkeys([8, 32, 56, 64, 96, 128, 256, 512], 100000)
# Files for ucx_perftest: for each metric its test; for each size the number of messages.
PERFTEST = {
    "small": ({"sep": "tag_lat"}, SHORT),
    "am": ({"sep": "ucp_am_lat"}, SHORT),
    "rate": ({"rate": "tag_bw"}, {8: 1000000}),
    "copies": (
        {"sep": "tag_lat", "bw": "tag_bw"},
        {1 << 10: 30000, 2 << 10: 30000, 4 << 10: 20000, 8 << 10: 10000, 16 << 10: 6000, 32 << 10: 4000}
        | {64 << 10: 2500, 256 << 10: 1000, 1 << 20: 250, 4 << 20: 40},
    ),
}  # fmt: skip


def perftest_command(perftest, environment, name):
    """Both sides read the tests from a file."""
    metrics, sizes = PERFTEST[name]
    file = BIN / f"ucx_perftest.{name}"
    tests = [(metric, size) for metric in metrics for size in sizes]
    BIN.mkdir(parents=True, exist_ok=True)
    file.write_text(
        "".join(f"{metric}_{size} -t {metrics[metric]} -s {size} -n {sizes[size]}\n" for metric, size in tests)
    )
    batch = ["-p", "PORT", "-b", file, "-f"]
    return Command([perftest, "127.0.0.1", "-c", 1, *batch], environment, [perftest, "-c", 0, *batch], perftest_figures)


def perftest_figures(output):
    """Test, iterations; 50 %, average, overall µs; average, overall MiB/s; average, overall messages/s."""
    values = {}
    for line in output.splitlines():
        words = line.split()
        if len(words) != 9 or "_" not in words[0]:
            continue
        metric, size = words[0].rsplit("_", 1)
        overall = {"bw": float(words[6]) * 2**20, "rate": float(words[8])}
        values[f"{metric} {size}"] = overall.get(metric, float(words[4]) * 1000)
    return values


def libfabric():
    def pingpong(size, count):
        common = ["-p", "shm", "-e", "rdm", "-m", "msg", "-I", count, "-S", size]
        server = ["taskset", "-c", 0, "fi_pingpong", "-B", "PORT", *common]
        client = ["taskset", "-c", 1, "fi_pingpong", "-P", "PORT", *common, "127.0.0.1"]
        return Command(client, {}, server, lambda output: pingpong_figures(output, f"sep {size}"), timeout=10)

    small = [pingpong(size, 50000) for size in (8, 64, 256)]
    copies = [pingpong(1 << 10, 20000), pingpong(64 << 10, 3000), pingpong(1 << 20, 300)]
    return [
        Item("libfabric shm, fi_pingpong", "small", small, ("debian",)),
        Item("libfabric shm, fi_pingpong", "copies", copies, ("debian",)),
    ]


def pingpong_figures(output, name):
    """bytes, sent, acknowledged, total, time, MB/s, µs for each transfer, ..."""
    rows = [line.split() for line in output.splitlines() if not line.startswith("bytes")]
    return {name: float(rows[-1][6]) * 1000} if rows and len(rows[-1]) >= 7 else {}


def rust_item(peer, test, program, *words, **more):
    needs = ("debian", program) if program == "peer-rpc" else (program,)
    return Item(peer, test, [Command([RUST / "release" / program, *words])], needs, **more)


def iceoryx():
    return [
        rust_item("iceoryx2", "small", "peer-iceoryx", "processes", "small"),
        rust_item("iceoryx2", "small threads", "peer-iceoryx", "threads", "small"),
        rust_item("iceoryx2", "copies", "peer-iceoryx", "processes", "copies"),
        rust_item("iceoryx2", "hand", "peer-iceoryx", "processes", "hand"),
    ]


def zeromq():
    def zmq(peer, test, *words):
        return Item(peer, test, [Command([BIN / "zmqbench", *words])], ("debian", "zmqbench"))

    return [
        zmq("ZeroMQ ipc", "small", "ipc", "block", "small"),
        zmq("ZeroMQ ipc", "copies", "ipc", "block", "copies"),
        zmq("ZeroMQ inproc", "small threads", "inproc", "block", "small"),
        zmq("ZeroMQ inproc, polled", "small threads", "inproc", "poll", "small"),
    ]


def others():
    found = []
    for test in ("small", "copies"):
        found.append(Item("NNG ipc", test, [Command([BIN / "nngbench", test])], ("debian", "nngbench")))
        found.append(rust_item("ipc-channel", test, "peer-ipcchannel", test))
    for library, label in (("std", "std mpsc"), ("crossbeam", "crossbeam"), ("flume", "flume")):
        for wait, suffix in (("poll", ", polled"), ("recv", "")):
            found.append(rust_item(label + suffix, "small threads", "peer-channels", library, wait))
            found.append(
                rust_item(label + suffix, "small threads unbound", "peer-channels", library, wait, pinned=False)
            )
    found += [rust_item(kind, "rpc", "peer-rpc", kind, rounds=5) for kind in ("tonic", "tarpc")]
    return found
