"""What an outage of a path costs: capacity lost, and the time until the path is full again after
its return.

The receiving host counts IP bytes of each interface, so any system can be measured. Outages count
that are over, with a second after them, within twice --seconds. Their times count from the first
packet, as those of the scenarios do.
"""
from pathlib import Path

import counts
import page
import stacks
import table

NAME = "outages"
TABLES = [
    page.Table("lost_s", "Capacity lost per outage, in seconds of all links; the worst of a transfer", "lost in s", 2, min),
    page.Table("full_after_s", "Time from the return of the path until it is full, in seconds; the worst of a transfer",
               "full after", 2, min),
    page.Table("max_delivery_gap_s", "Longest gap between two deliveries, in seconds", "longest gap", 2, min),
]
# The loss counts from the beginning of an outage to this long after its end.
AFTER_S = 1.0
# A path is full if it carries this part of its rate for so long.
FULL, FULL_FOR_S = 0.9, 0.2
STEP_S = 0.02


def length(options):
    return 2 * options.seconds


def outages(network, options):
    """Pairs of the number of a path, and the begin and end of an outage that counts; in the order
    of paths.
    """
    return [(number, down, up) for number, path in enumerate(network.paths, 1) for down, up in path.outages
            if up + AFTER_S <= length(options)]


def cases(options, _directory):
    found = table.chosen([], options.network)
    return [network for network in found if outages(network, options)]


def seconds(_case, options):
    return length(options) + 1.5


def rate(case):
    """What the links offer together, in bit/s."""
    return case.offered_bps(1)


def can(_case, _stack):
    return True


def measure(network, stack, options, number, directory):
    file = Path(directory, "received")
    outcome = stacks.transfer(stack, network.file, options, number, directory, length(options), beside=[("z", counts.command(file))])
    run = {"error": outcome.error, "warnings": outcome.warnings, "links_late_p99_s": outcome.late_p99_s, "lost_s": None,
           "full_after_s": None, "max_delivery_gap_s": outcome.gap_s, "outages": []}
    received = counts.Counts(file)
    first = received.first()
    if run["error"] or first is None:
        run["error"] = run["error"] or "nothing arrived"
        return run
    # When the links counted the first packet.
    begin = first - network.paths[0].delay_s
    for path, down, up in outages(network, options):
        run["outages"].append({"path": path, "at_s": down, "lost_s": lost(network, received, begin, down, up),
                               "full_after_s": full_after(network, received, begin, path, up, outcome.seconds)})
    run["lost_s"] = max(outage["lost_s"] for outage in run["outages"])
    run["full_after_s"] = max(outage["full_after_s"] for outage in run["outages"])
    return run


def lost(network, received, begin, down, up):
    """What was offered and not received around an outage, in seconds of all links. Each path is
    seen its delay later.
    """
    missing = rates = 0.0
    for number, path in enumerate(network.paths, 1):
        offered = path.bits(up + AFTER_S) - path.bits(down)
        at = begin + path.delay_s
        missing += offered - 8 * received.between(at + down, at + up + AFTER_S, f"path{number}")
        rates += path.bits(STEP_S) / STEP_S
    return missing / rates


def full_after(network, received, begin, number, up, end):
    """Time until a path is full after its return. If it never is: until the next outage, or the end
    of the transfer.
    """
    path, interface = network.paths[number - 1], f"path{number}"
    until = min([down for down, _ in path.outages if down > up], default=end)
    at, step = begin + path.delay_s, 0
    while up + step * STEP_S + FULL_FOR_S <= until:
        since = up + step * STEP_S
        offered = path.bits(since + FULL_FOR_S) - path.bits(since)
        if 8 * received.between(at + since, at + since + FULL_FOR_S, interface) >= FULL * offered:
            return since - up
        step += 1
    return until - up
