"""What the commands of the sections do: install, measure alternately, and write the section with its plots and its file of runs."""

import argparse
import time

import install
import measure

ROUNDS = 7
QUICK_ROUNDS = 2


def run(section):
    arguments = options(section)
    if arguments.render:
        return section.write()
    results = measure.Results(arguments.fresh, section.data)
    items = section.items()
    wanted = {step for item in items for step in item.needs} | {"floor", "matplotlib"}
    install.install(wanted, arguments.mizzen, results.data["installed"])
    for step in section.needs:
        if results.data["installed"][step]:
            raise SystemExit(f"nothing can be measured without {step}: {results.data['installed'][step]}")
    if arguments.install:
        return None
    results.data["versions"] = install.versions()
    # A part of the Debian packages may be absent: what needs it was not built.
    failed = {step for step, why in results.data["installed"].items() if why and step != "debian"}
    items = [item for item in items if not failed.intersection(item.needs)]
    deadline = time.monotonic() + (arguments.seconds or float("inf"))
    count = QUICK_ROUNDS if arguments.quick else arguments.rounds
    if not measure.rounds(items, count, results, deadline):
        print("time is over: the same command goes on from here")
    return section.write()


def options(section):
    parser = argparse.ArgumentParser(description=f"Measures what the section {section.title} of docs/performance.md tells, and writes it.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often to measure each, alternately (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds: to see that all works")
    parser.add_argument("--mizzen", metavar="PATH", help="a built `mizzen` (default: built from this repository)")
    parser.add_argument("--fresh", action="store_true", help=f"forget what {section.data.name} holds")
    parser.add_argument("--seconds", type=float, help="stop after so long; the next call goes on")
    parser.add_argument("--install", action="store_true", help="install and build only")
    parser.add_argument("--render", action="store_true", help=f"write the section and its plots from {section.data.name}")
    return parser.parse_args()
