"""Latency of messages of 1 kB at half of what two unequal paths offer, beside that of the faster
path alone.

Each network is a folder of two scenarios: both.toml, and fast.toml with the faster path of it. The
second carries a quarter of its rate. The latency is the 99th percentile from the time at which a
message is due to its acknowledgement at the sender. Each transfer takes as long as those of the
scenarios in the simulator, so that slow start weighs as much: 20 s by default.
"""
from dataclasses import dataclass
from pathlib import Path

import page
import stacks
import table

NAME = "latency"
# So many transfers at once: more of them delay each other's packets on two processors.
AT_ONCE = 2
TABLES = [
    page.Table("latency_ratio", "99th percentile at half load, divided by that of the faster path alone at a quarter of its rate",
               "ratio", 2, min),
    page.Table("latency_ms", "99th percentile of the latency at half load, in milliseconds", "latency in ms", 0, min),
    page.Table("alone_ms", "The same of the faster path alone at a quarter of its rate", "alone", 0, min),
]


@dataclass
class Case:
    file: Path
    name: str
    description: str
    both: table.Network
    fast: table.Network


def cases(options, _directory):
    found = []
    for folder in sorted((table.FOLDER / "latency").iterdir()):
        if table.is_wanted(folder.name, options.network):
            both, fast = table.load(folder / "both.toml"), table.load(folder / "fast.toml")
            found.append(Case(folder, both.name, both.description, both, fast))
    return found


def length(options):
    return 2 * options.seconds


def seconds(_case, options):
    return 2 * (length(options) + 1.5)


def rate(case):
    """What the links offer together, in bit/s."""
    return case.both.offered_bps(1)


def can(_case, stack):
    return stack.paced is not None


def measure(case, stack, options, number, directory):
    takes = length(options)
    both = stacks.transfer(stack, case.both.file, options, number, directory, takes, rate=case.both.offered_bps(takes) / 2)
    alone = stacks.transfer(stack, case.fast.file, options, number, directory, takes, rate=case.fast.offered_bps(takes) / 4)
    error = both.error or alone.error
    if error is None and not (both.latency_s and alone.latency_s):
        error = "no latency was printed"
    return {
        "latency_ms": None if error else both.latency_s * 1e3, "alone_ms": None if error else alone.latency_s * 1e3,
        "latency_ratio": None if error else both.latency_s / alone.latency_s,
        "mbit_per_s": both.bytes * 8 / both.seconds / 1e6 if both.seconds else 0.0, "error": error,
        "links_late_p99_s": both.late_p99_s, "warnings": both.warnings + alone.warnings,
    }
