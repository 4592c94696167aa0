"""Throughput as a share of what the links offer, and the longest gap between two deliveries."""
import page
import stacks
import table

NAME = "throughput"
TABLES = [
    page.Table("share", "Share of what the links offer", "share", 2, max),
    page.Table("max_delivery_gap_s", "Longest gap between two deliveries, in seconds", "longest gap", 2),
]


def cases(options, directory):
    drawn = table.draw(options.random, options.random_seed, directory)
    return table.chosen(options.scenario, options.network, drawn)


def seconds(_case, options):
    return options.seconds + 1.5


def rate(case):
    """What the links offer together, in bit/s."""
    return case.offered_bps(1)


def can(_case, _stack):
    return True


def measure(network, stack, options, number, directory):
    outcome = stacks.transfer(stack, network.file, options, number, directory, options.seconds)
    offered = network.offered_bps(outcome.seconds)
    # A transfer that did not come to its end does not count for what it delivered before.
    is_good = outcome.error is None and offered > 0
    return {
        "share": outcome.bytes * 8 / outcome.seconds / offered if is_good else 0.0,
        "mbit_per_s": outcome.bytes * 8 / outcome.seconds / 1e6 if is_good else 0.0,
        "offered_mbit_per_s": offered / 1e6, "bytes": outcome.bytes, "seconds": outcome.seconds,
        "max_delivery_gap_s": outcome.gap_s if is_good else None, "error": outcome.error,
        "links_late_p99_s": outcome.late_p99_s, "warnings": outcome.warnings,
    }
