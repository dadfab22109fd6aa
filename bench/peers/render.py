"""Writes docs/performance.md from results.json; plot.py draws its plots."""

import subprocess
import sys
import textwrap
from dataclasses import dataclass

import section
from figures import Figures
from install import HERE, ROOT, VENV

DOCUMENT = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "images"
KIB, MIB = 1 << 10, 1 << 20
# A table of all would be too wide to read.
SLOTS = [8, 32, 56, 64]
LINES = [96, 128, 256, 512]
RING = [KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB]
CHUNKS = [64 * KIB, 256 * KIB, MIB, 4 * MIB, 64 * MIB]
OURS = "Mizzen"


@dataclass
class Table:
    """Peers as rows, sorted by the first column's ratio; sizes as columns."""

    title: str
    text: str
    test: str
    metric: str
    sizes: list
    unit: str
    scale: float
    floor: str = "line"
    higher_is_better: bool = False
    of_pairs: bool = False
    # The sizes that the summary shows; none: all.
    brief: list = None

    def column(self, size):
        if self.of_pairs:
            return f"{size} pair{'s' if size > 1 else ''}"
        return size_name(size)


TABLES = [
    Table(
        "Short messages between processes",
        "One-way time, half of a ping-pong. Everyone polls, but for ZeroMQ, NNG and ipc-channel, whose receivers sleep. The "
        "floor is a ring of slots of one cache line. `post` sends through an address, without opening a `Sender`.",
        "small", "lat", SLOTS, "ns", 1, brief=[8, 64],
    ),
    Table(
        "Messages of a few lines between processes",
        "The same. × is to one cache line, as above; the row of the floor is two copies through shared memory.",
        "small", "lat", LINES, "ns", 1, brief=[128, 256],
    ),
    Table(
        "Short messages between processes, the source never rewritten",
        "Each side sends from one buffer and receives into another, as `ucx_perftest` and `fi_pingpong` measure.",
        "small", "sep", SLOTS, "ns", 1, brief=[8, 64],
    ),
    Table(
        "Messages of a few lines between processes, the source never rewritten",
        "",
        "small", "sep", LINES, "ns", 1, brief=[256],
    ),
    Table(
        "Short messages between threads of one process, pinned",
        "The same, between two threads on two cores. \"Polled\" is `try_recv` in a loop; the others call `recv`, and std's "
        "and flume's then sleep. The floor is that between processes: the cache line is the same.",
        "small threads", "lat", SLOTS, "ns", 1, brief=[8, 64],
    ),
    Table(
        "Short messages between threads of one process, where the system puts them",
        "",
        "small threads unbound", "lat", SLOTS, "ns", 1, brief=[8],
    ),
    Table(
        "Rate of short messages between processes",
        "One direction. For the peers the best of six streams, three with an acknowledgement after 64 messages and three after "
        "16,384; for ours the median of five, without any but the library's own, and so for `ucx_perftest`, once.",
        "small", "rate", [8], "million/s", 1e-6, "floor", True,
    ),
    Table(
        "Rate of short messages between threads, pinned",
        "",
        "small threads", "rate", [8], "million/s", 1e-6, "floor", True,
    ),
    Table(
        "From memory to memory, echoed, up to 32 KiB",
        "One-way time of a ping-pong from the user's memory into the user's memory; each side sends back what it received, so "
        "each message was just written by the other core. The floor is two overlapped copies through 16 chunks of 32 KiB.",
        "copies", "lat", RING, "µs", 1e-3, "floor", brief=[KIB, 8 * KIB],
    ),
    Table(
        "From memory to memory, echoed, from 64 KiB on",
        "",
        "copies", "lat", CHUNKS, "µs", 1e-3, "floor", brief=[64 * KIB, MIB],
    ),
    Table(
        "From memory to memory, the source never rewritten, up to 32 KiB",
        "As `ucx_perftest` and `fi_pingpong` measure: each side sends from one buffer and receives into another, so the source "
        "stays in the sender's cache. **Not comparable with the tables above.**",
        "copies", "sep", RING, "µs", 1e-3, "floor", brief=[KIB, 8 * KIB],
    ),
    Table(
        "From memory to memory, the source never rewritten, from 64 KiB on",
        "",
        "copies", "sep", CHUNKS, "µs", 1e-3, "floor", brief=[64 * KIB, MIB],
    ),
    Table(
        "Buffers handed over",
        "One-way time when the receiver gets the buffer itself, a lent buffer of Mizzen or a sample of iceoryx2, and reads it "
        "where it is; beside those who copy (echoed, as above). Mizzen's buffers are made before the clock starts and are not "
        "touched; of iceoryx2's the next is loaned ahead, and the first eight bytes are written and read, which moves one more "
        "cache line.",
        "hand", "hand", [64 * KIB, MIB, 64 * MIB], "µs", 1e-3,
    ),
    Table(
        "Streams, from memory to memory",
        "One direction, from one buffer into one buffer; the MPIs and UCX with 64 messages in flight (16 from 1 MiB).",
        "copies", "bw", CHUNKS[:-1], "GB/s", 1e-9, "floor", True, brief=[64 * KIB, MIB],
    ),
    Table(
        "Pairs of threads in two processes",
        "8 B ping-pong of all pairs at once, threads not bound, messages of all pairs together. MPI_THREAD_MULTIPLE. "
        "A waiting side of the first floor spins and yields; of the second it spins and then sleeps, which moves more "
        "messages and starves pairs (next table).",
        "threads", "threads", [1, 2, 4, 8], "thousand/s", 1e-3, "floor, spin and yield", True, True, [2, 8],
    ),
    Table(
        "Short messages over TCP",
        "One-way time between two processes over the loopback interface, echoed, all polling. The floor is a bare socket. Mizzen "
        "on a network that is declared trusted, so in clear as all others, and with TLS.",
        "TCP small", "lat", SLOTS + LINES, "µs", 1e-3, "floor", brief=[8, 256],
    ),
    Table(
        "Rate of short messages over TCP",
        "One direction.",
        "TCP small", "rate", [8], "million/s", 1e-6, "floor", True,
    ),
    Table(
        "From memory to memory over TCP, up to 32 KiB",
        "One-way time, echoed.",
        "TCP copies", "lat", RING, "µs", 1e-3, "floor", brief=[KIB, 8 * KIB],
    ),
    Table(
        "From memory to memory over TCP, from 64 KiB on",
        "",
        "TCP copies", "lat", CHUNKS[:-1], "µs", 1e-3, "floor", brief=[64 * KIB, MIB],
    ),
    Table(
        "Streams over TCP",
        "One direction, from one buffer into one buffer.",
        "TCP copies", "bw", RING[3:] + CHUNKS[:-1], "GB/s", 1e-9, "floor", True, brief=[64 * KIB, MIB],
    ),
]  # fmt: skip
WAITS = Table("", "", "threads", "gap", [1, 2, 4, 8], "ms", 1e-6, "", False, True)
CALLS = HERE / "calls.json"
RPC = Table("", "", "rpc", "rtt", [0, KIB, 64 * KIB, MIB, 4 * MIB], "µs", 1e-3, "")


def render():
    figures = Figures()
    parts = [head(figures), where_better(figures), summary(figures)]
    plots = draw()
    for table in TABLES:
        if not rows_of(figures, table):
            continue
        parts += [f"## {table.title}", textwrap.fill(table.text, 120)]
        parts.append(hand_over(figures, table) if table.test == "hand" else ratios(figures, table))
        parts += [plots[table.metric]] if table.test == "copies" and table.metric in plots and CHUNKS[0] in table.sizes else []
    parts += [longest_waits(figures), idle_and_start(figures), calls(), *(one.text() for one in section.SECTIONS)]
    parts += [not_measured(figures), method(figures)]
    DOCUMENT.write_text("\n\n".join(part for part in parts if part) + "\n")
    print(f"wrote {DOCUMENT.relative_to(ROOT)}")
    return 0


def draw():
    """The plots, as Markdown. They need matplotlib, which `run` installs in an environment of its own."""
    python = VENV / "matplotlib/bin/python"
    if not python.exists():
        print("no plots: `run --install` installs matplotlib for them", file=sys.stderr)
        return {}
    for old in IMAGES.glob("performance-*.svg"):
        old.unlink()
    subprocess.run([python, HERE / "plot.py", IMAGES], check=True)
    drawn = {"lat": ("latency", "One-way time over the size"), "bw": ("bandwidth", "Bandwidth over the size")}
    named = {metric: (f"performance-{name}.svg", text) for metric, (name, text) in drawn.items()}
    return {metric: f"![{text}](images/{file})" for metric, (file, text) in named.items() if (IMAGES / file).exists()}


def head(figures):
    machine = figures.data["machine"]
    dates = sorted(run["date"] for run in figures.data["runs"])
    rounds = 1 + max(run["round"] for run in figures.data["runs"])
    virtual = "virtual machine" if machine["virtual"] else "machine"
    line = figures.lines()
    first, last = (date[:16].replace("T", " ") for date in (dates[0], dates[-1]))
    low, middle, high = (line[len(line) * tenths // 10] for tenths in (1, 5, 9))
    # What whoever put the results together has to say about them.
    remark = "".join(f"\n\n{text}" for text in [figures.data.get("remark")] if text)
    return f"""# Performance

Mizzen beside what one would use instead, and beside the floor: the bare machine doing the same with the least code.
Written by `bench/peers/run --render` from [results.json](../bench/peers/results.json), which has every run.

A cell is the median of {rounds} rounds, and in parentheses the least and the most. × is the ratio to the floor **of the
same round**: compare these, because this machine's speed changes from minute to minute. Of times the lower ratio is better,
of rates and bandwidths the higher. Tables are sorted by the ratio of their first column.

Measured from {first} to {last} UTC on a {virtual}: {machine["processor"]},
{machine["cores"]} cores, {machine["memory_gib"]} GiB, {machine["kernel"]}, {machine["system"]}. One cache line from core to core
took {middle:.0f} ns (a tenth of the calibrations below {low:.0f}, a tenth above {high:.0f}). **One machine, {machine["cores"]} cores, no
network:** what is here says nothing about other processors, more cores, or hosts.{remark}"""


def summary(figures):
    """A few columns of each table, a line each: floor, ours, the best peer."""
    lines = ["| | floor | Mizzen | best peer |", "| --- | ---: | ---: | --- |"]
    for table in TABLES:
        for size in table.brief or table.sizes:
            ours = figures.figure(OURS, table.test, f"{table.metric} {size}")
            peers = [row for row in rows_of(figures, table, size) if not row.startswith(("floor", OURS))]
            if not ours or not peers:
                continue
            floor = figures.figure(
                "floor" if table.floor == "line" else table.floor, table.test, f"{table.metric} {size}"
            )
            best = figures.figure(peers[0], table.test, f"{table.metric} {size}")
            shown = [
                f"{number(figure.median * table.scale)} {table.unit}" if figure else "–"
                for figure in (floor, ours, best)
            ]
            lines.append(f"| {table.title}, {table.column(size)} | {shown[0]} | {shown[1]} | {shown[2]} {peers[0]} |")
    return "## In short\n\nMedians; the best peer is the one with the best ratio.\n\n" + "\n".join(lines)


def ratios(figures, table):
    """Value and ratio for each size."""
    sizes = [size for size in table.sizes if rows_of(figures, table, size)]
    header = [f"{table.column(size)}, {table.unit} | ×" for size in sizes]
    lines = [f"| | {' | '.join(header)} |", "| --- |" + " ---: | ---: |" * len(sizes)]
    for peer in rows_of(figures, table):
        cells = []
        for size in sizes:
            metric = f"{table.metric} {size}"
            ratio = (
                figures.ratio(peer, table.test, metric, table.floor)
                if figures.values(peer, table.test, metric)
                else None
            )
            cells += [cell(figures.figure(peer, table.test, metric), table.scale), cell(ratio, 1)]
        lines.append(f"| {bold(peer)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def rows_of(figures, table, size=None):
    """Who has a figure, the best ratio first; those without the first size after them."""

    def order(peer):
        for place, candidate in enumerate([size] if size else table.sizes):
            ratio = (
                figures.ratio(peer, table.test, f"{table.metric} {candidate}", table.floor)
                if figures.values(peer, table.test, f"{table.metric} {candidate}")
                else None
            )
            if ratio:
                return place, -ratio.median if table.higher_is_better else ratio.median
        return len(table.sizes), 0

    sizes = [size] if size else table.sizes
    peers = dict.fromkeys(peer for each in sizes for peer in figures.peers(table.test, f"{table.metric} {each}"))
    return sorted(peers, key=order)


def hand_over(figures, table):
    """What is not copied, above those who copy."""
    rows = {}
    for test, metric, suffix in ((table.test, table.metric, ", handed over"), ("copies", "lat", ", copied")):
        for size in table.sizes:
            for peer in figures.peers(test, f"{metric} {size}"):
                rows.setdefault(peer + suffix, {})[size] = figures.figure(peer, test, f"{metric} {size}")
    rows = {row: found for row, found in rows.items() if MIB in found}
    lines = [
        f"| | {' | '.join(f'{size_name(size)}, µs' for size in table.sizes)} |",
        "| --- |" + " ---: |" * len(table.sizes),
    ]
    for row, found in sorted(rows.items(), key=lambda entry: entry[1][MIB].median):
        lines.append(f"| {bold(row)} | {' | '.join(cell(found.get(size), table.scale) for size in table.sizes)} |")
    return "\n".join(lines)


def longest_waits(figures):
    lines = plain_rows(figures, WAITS)
    worst = Table("", "", "threads", "worst", [8], "×", 1, "")
    spread = [
        f"{peer} {number(figures.figure(peer, 'threads', 'worst 8').median)}" for peer in plain_order(figures, worst)
    ]
    return (
        "## Longest wait of any pair for one answer\n\nThe same runs as above: how long a pair may be left out.\n\n"
        f"{lines}\n\nSlowest of 8 pairs, as times the median pair: {'; '.join(spread)}."
        if lines
        else ""
    )


def idle_and_start(figures):
    lines = ["| | | |", "| --- | --- | ---: |"]
    for test, metric, what, scale in (
        ("asleep", "asleep 8", "8 B to a receiver that waits since 200 µs, µs", 1e-3),
        ("lanes", "lanes 8", "8 B beside 1,000 idle senders, ns", 1),
        ("idle", "idle 0", "CPU of a process that waits, %", 1),
        ("start", "start 64", "64 processes start and end, ms", 1000),
    ):
        found = {peer: figures.figure(peer, test, metric) for peer in figures.peers(test, metric)}
        for peer, figure in sorted(found.items(), key=lambda entry: entry[1].median):
            lines.append(f"| {what} | {bold(peer)} | {cell(figure, scale)} |")
            what = ""
    text = (
        "The floor of a waiting receiver is one that sleeps in a futex. The processes that start do nothing but join and leave "
        "(MPI: `MPI_Init`, `MPI_Finalize`), timed with their launcher; the floor forks and runs `/bin/true`."
    )
    return "\n\n".join(("## Waiting, idle, starting", textwrap.fill(text, 120), "\n".join(lines)))


def calls():
    if not CALLS.exists():
        return ""
    lines = plain_rows(Figures(CALLS), RPC)
    text = textwrap.fill(
        "Whole round trips: a body is sent, put into memory that the called function makes when it knows the length, and "
        "returned. Mizzen and MPI through shared memory between two processes, by MPI as a header message and a body message "
        "each way, which is how it is done by hand; tonic and tarpc, and Mizzen where it says so, over TCP on the loopback "
        "interface. 0 B is a typed function of nothing that returns nothing.",
        120,
    )
    return f"## Remote calls\n\n{text}\n\n{lines}" if lines else ""


def plain_order(figures, table):
    """Ascending by the last size."""
    found = figures.peers(table.test, f"{table.metric} {table.sizes[-1]}")
    return sorted(found, key=lambda peer: figures.figure(peer, table.test, f"{table.metric} {table.sizes[-1]}").median)


def plain_rows(figures, table):
    """Values without ratios."""
    peers = plain_order(figures, table)
    if not peers:
        return ""
    header = [f"{table.column(size)}, {table.unit}" for size in table.sizes]
    lines = [f"| | {' | '.join(header)} |", "| --- |" + " ---: |" * len(header)]
    for peer in peers:
        cells = [cell(figures.figure(peer, table.test, f"{table.metric} {size}"), table.scale) for size in table.sizes]
        lines.append(f"| {bold(peer)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def where_better(figures):
    """Every column in which a peer has a better ratio than ours."""
    lines, compared = [], False
    for table in TABLES:
        for size in table.sizes:
            metric = f"{table.metric} {size}"
            if not figures.values(OURS, table.test, metric):
                continue
            ours = figures.ratio(OURS, table.test, metric, table.floor)
            better = []
            compared |= any(not peer.startswith(("floor", OURS)) for peer in rows_of(figures, table, size))
            for peer in rows_of(figures, table, size):
                if peer == OURS:
                    break
                ratio = figures.ratio(peer, table.test, metric, table.floor)
                if not peer.startswith(("floor", OURS)) and ratio:
                    better.append(
                        f"{peer} {number(ratio.median)}{' (spreads overlap)' if ratio.overlaps(ours) else ''}"
                    )
            if better:
                lines.append(
                    f"- {table.title}, {table.column(size)} (Mizzen {number(ours.median)} ×): {', '.join(better)}."
                )
    if not compared:
        return ""
    text = "By the median ratio; where the spreads overlap, the order may be chance.\n\n"
    return "## Where a peer is better\n\n" + (text + "\n".join(lines) if lines else "Nowhere in these tables.")


def not_measured(figures):
    lines = [f"- {step} was not installed: {why}." for step, why in figures.data["installed"].items() if why]
    for item, (total, messages) in figures.failures().items():
        lines.append(f"- {item}: {len(messages)} of {total} runs failed ({messages[-1]}).")
    disturbed = sum(1 for run in figures.data["runs"] if run.get("disturbed"))
    lines.append(
        f"- {disturbed} of {len(figures.data['runs'])} runs stayed disturbed by other programs or by a changing machine, and are included."
    )
    return (
        "## What failed, and what is missing\n\n" + "\n".join(lines) + "\n"
        "- Not compared: networks other than TCP on the loopback interface, more than two cores, KNEM and XPMEM (kernel modules), zenoh."
    )


def method(figures):
    versions = ", ".join(f"{name} {version}" for name, version in sorted(figures.data["versions"].items()))
    commands = [f"# {item}\n" + "\n".join(lines) for item, lines in figures.data["commands"].items()]
    return f"""## Method

- Floor, Mizzen and all peers run alternately, test by test, so that the rows of a table come from the same minutes.
- Before and after each run a bare cache line is passed between the two cores for 0.1 s. If the two calibrations differ by more
  than 1.6 times, or other programs used more than 0.35 of a core, the run is repeated, at most twice.
- Both sides are pinned to a core each, unless a table says otherwise. ZeroMQ and NNG have more threads than that, and their
  threads share those cores.
- C and Rust peers are measured by the same loops (`bench/peers/c/pingpong.h`, `bench/peers/rust/common`); ours by
  `mizzen bench`, which has the same ping-pong in Rust; ucx_perftest and fi_pingpong by themselves.
- A peer's figure of one round is the mean over about 0.1 s (0.06 s from 1 KiB on), ours the median of three or five stretches of
  20 ms.
- Peers are used the way their authors do: iceoryx2 loans ahead and polls, UCX over its shared memory, Open MPI both with its
  own shared memory and through UCX. Nothing else is tuned, in ours neither.
- We wrote this comparison, and know Mizzen better than the others: corrections are welcome.

Versions: {versions}.

<details><summary>Commands</summary>

CORE_A=0 and CORE_B=1 (-1: not pinned) are set for the programs of bench/peers.

```sh
{chr(10).join(commands)}
```

</details>"""


def cell(figure, scale):
    if not figure:
        return "–"
    if figure.rounds == 1:
        return number(figure.median * scale)
    return f"{number(figure.median * scale)} ({number(figure.least * scale)}–{number(figure.most * scale)})"


def number(value):
    """Three digits."""
    if value < 0.001:
        return "<0.001"
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.2f}" if 0.1 <= value < 10 else f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def bold(peer):
    return f"**{peer}**" if peer.startswith(OURS) else peer


def size_name(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"
