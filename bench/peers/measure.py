"""Runs the items alternately, each between two calibrations, and stores every run."""

import datetime
import json
import os
import platform
import re
import resource
import signal
import socket
import statistics
import subprocess
import time
from pathlib import Path

from install import BIN, HERE, ROOT, anonymous

RESULTS = HERE / "results.json"
# Cores that processes of others may have used while a run lasted; above it the run is repeated.
FOREIGN_CORES = 0.35
# The calibrations before and after may differ by this factor; above it the run is repeated.
DRIFT = 1.6
ATTEMPTS = 3
PINNED = {"CORE_A": "0", "CORE_B": "1"}
UNBOUND = {"CORE_A": "-1", "CORE_B": "-1"}


class Results:
    """What was measured, on disk after each run."""

    def __init__(self, fresh, file=RESULTS):
        self.file = file
        self.data = {"machine": machine(), "installed": {}, "versions": {}, "commands": {}, "runs": []}
        if file.exists() and not fresh:
            stored = json.loads(file.read_text())
            if stored["machine"] != self.data["machine"]:
                raise SystemExit(f"{file.name} was measured on another machine: start again with --fresh")
            self.data = stored

    def ours_is(self, build):
        """Figures of two builds of ours, or of ours and peers from different hours, are not to be compared."""
        if self.data.setdefault("build", build) != build:
            raise SystemExit(f"{self.file.name} is of another build of mizzen: start again with --fresh")

    def has(self, item, number):
        return any(run["item"] == item.name and run["round"] == number for run in self.data["runs"])

    def add(self, run):
        self.data["runs"].append(run)
        self.save()

    def save(self):
        """One run a line, so that differences can be read."""
        head = {name: value for name, value in self.data.items() if name != "runs"}
        text = json.dumps(head, indent=1)[:-2]
        lines = ",\n  ".join(json.dumps(run, ensure_ascii=False) for run in self.data["runs"])
        new = self.file.with_suffix(".new")
        new.write_text(f'{text},\n "runs": [\n  {lines}\n ]\n}}\n')
        new.replace(self.file)


def machine():
    cpu = Path("/proc/cpuinfo").read_text()

    def field(name):
        return (re.search(rf"^{name}\s*: (.*)$", cpu, re.M) or ["", "unknown"])[1]

    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1]
    release = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    return {
        "processor": f"{field('model name')}, family {field('cpu family')} model {field('model')}",
        "cores": os.cpu_count(),
        "virtual": "hypervisor" in field("flags"),
        "memory_gib": round(int(memory) / 2**20),
        "kernel": f"Linux {platform.release()}",
        "system": release,
    }


def rounds(items, count, results, deadline):
    """Each round runs each item once; what an earlier call has done is not repeated. False if time ran out."""
    for number in range(count):
        for item in items:
            if number >= min(count, item.rounds or count) or results.has(item, number):
                continue
            if time.monotonic() > deadline:
                return False
            run = measured(item)
            run |= {"item": item.name, "round": number}
            results.data["commands"][item.name] = [anonymous(str(command)) for command in item.commands]
            results.add(run)
            note = run.get("error") or "  ".join(
                f"{name} {value:.4g}" for name, value in list(run["values"].items())[:4]
            )
            print(
                f"round {number + 1}/{count}  {item.name:<36} line {statistics.mean(run['line']):.0f} ns  {note}",
                flush=True,
            )
    return True


def measured(item):
    """The first undisturbed run of a few; otherwise the least disturbed."""
    best = None
    for _ in range(ATTEMPTS):
        wait_for_quiet()
        before = line()
        busy, own, start = busy_seconds(), own_seconds(), time.monotonic()
        values, error = execute(item)
        elapsed = max(time.monotonic() - start, 0.05)
        foreign = max(0.0, ((busy_seconds() - busy) - (own_seconds() - own)) / elapsed)
        after = line()
        run = {
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "seconds": round(elapsed, 2),
            "line": [round(before, 1), round(after, 1)],
            "foreign": round(foreign, 2),
            "values": values,
        }
        if error:
            return run | {"error": error}
        if best is None or foreign < best["foreign"]:
            best = run
        if foreign <= FOREIGN_CORES and max(before, after) <= DRIFT * min(before, after):
            return run
    return best | {"disturbed": True}


def execute(item):
    """Runs the commands of an item one after the other: (figures, what went wrong)."""
    values = {}
    for command in item.commands:
        start = time.monotonic()
        output, error = run_command(command, PINNED if item.pinned else UNBOUND)
        values |= command.parse(output)
        if command.times:
            values[command.times] = time.monotonic() - start
        if error:
            return rounded(values), error
    return rounded(values), "" if values else "no figures printed"


def rounded(values):
    """Four digits are more than the machine repeats."""
    return {name: float(f"{value:.4g}") for name, value in values.items()}


def run_command(command, environment):
    environment = os.environ | environment | {name: str(value) for name, value in command.environment.items()}
    server = None
    port = str(free_port())

    def start(words):
        words = [str(word).replace("PORT", port) for word in words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(words, env=environment, cwd=ROOT, text=True, start_new_session=True, **pipes)

    try:
        if command.server:
            server = start(command.server)
            time.sleep(0.4)
        client = start(command.words)
    except OSError as problem:
        return "", anonymous(str(problem))
    try:
        output, errors = client.communicate(timeout=command.timeout)
    except subprocess.TimeoutExpired:
        end(client)
        return client.communicate()[0], f"not finished after {command.timeout} s"
    finally:
        if server:
            try:
                server.communicate(timeout=3)
            except subprocess.TimeoutExpired:
                end(server)
    if client.returncode:
        last = [line for line in errors.splitlines() if line.strip()][-1:] or ["no message"]
        return output, anonymous(f"exit status {client.returncode}: {last[0]}")[:300]
    return output, ""


def end(process):
    """First politely: a launcher then ends what it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=3)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def line():
    """The calibration: ns for one cache line from one core to the other."""
    output = subprocess.run(
        [BIN / "floor", "line"], env=os.environ | PINNED, capture_output=True, text=True, timeout=30
    )
    return float(output.stdout.split()[-1])


def busy_seconds():
    """Processor time used by anybody, steal included."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    uses = (resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def wait_for_quiet(most=5.0):
    start = time.monotonic()
    while time.monotonic() - start < most:
        before = busy_seconds()
        time.sleep(0.1)
        if busy_seconds() - before <= 0.02:
            return
