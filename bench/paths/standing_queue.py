"""The queue that a transfer keeps in a deep buffer, by the one-way delay of small probes over the
same links.

The queueing delay of a probe is what it takes beyond the delay of its path. Divided by the path's
base round-trip time it is the queue in units of the bandwidth-delay product (BDP). The standing
queue is the median, after a warm-up.
"""
import json
import statistics
from pathlib import Path

import emulation
import page
import stacks
import table

NAME = "standing-queue"
TABLES = [
    page.Table("standing_bdp", "Standing queue of the path that has the longest, in BDP", "standing queue", 2, min),
    page.Table("p95_bdp", "The same, 95th percentile", "95th percentile", 2, min),
    page.Table("share", "Share of what the links offer", "share", 2, max),
]
PORT = 9900
# The first third of a transfer; after it the probes count.
WARM_UP = 1 / 3
PROBES_MIN = 20


def cases(options, _directory):
    files = sorted((table.FOLDER / "standing-queue").glob("*.toml"))
    return [table.load(file) for file in files if table.is_wanted(file.stem, options.network)]


def seconds(_case, options):
    return options.seconds + 1.5


def rate(case):
    """What the links offer together, in bit/s."""
    return case.offered_bps(1)


def can(_case, _stack):
    return True


def delays(file, begin, end):
    """One-way delays of the probes that were sent within a part of the time from the first one on,
    sorted.
    """
    seen = json.loads(file.read_text(encoding="ascii")) if file.exists() else []
    first = min((sent for sent, _ in seen), default=0.0)
    return sorted(delay for sent, delay in seen if first + begin <= sent < first + end)


def measure(network, stack, options, number, directory):
    go, length, beside, outs = Path(directory, "go"), options.seconds, [], []
    go.unlink(missing_ok=True)
    for index in range(1, len(network.paths) + 1):
        outs.append(out := Path(directory, f"probes-{index}"))
        out.unlink(missing_ok=True)
        # Each path has a host address of its own at both ends.
        beside.append(("z", emulation.python("probes.py", "sink", PORT + index, out)))
        beside.append(("a", emulation.after(go, emulation.python("probes.py", "send", f"z-{index}", PORT + index, length))))
    outcome = stacks.transfer(stack, network.file, options, number, directory, length, beside=beside, first=f"touch {go}")
    run = {"error": outcome.error, "warnings": outcome.warnings, "links_late_p99_s": outcome.late_p99_s, "paths": [],
           "standing_bdp": None, "p95_bdp": None, "share": None}
    for out, path in zip(outs, network.paths):
        found = [(delay - path.delay_s) / (2 * path.delay_s) for delay in delays(out, WARM_UP * length, length)]
        if len(found) < PROBES_MIN:
            run["error"] = run["error"] or f"only {len(found)} probes arrived"
            continue
        run["paths"].append({"probes": len(found), "min_bdp": found[0], "standing_bdp": statistics.median(found),
                             "p95_bdp": found[int(0.95 * len(found))]})
    if run["error"] is None:
        run |= {key: max(path[key] for path in run["paths"]) for key in ("standing_bdp", "p95_bdp")}
        run["share"] = outcome.bytes * 8 / outcome.seconds / network.offered_bps(outcome.seconds)
    return run
