"""Fairness: beside one flow of the kernel's TCP with CUBIC, and of several flows of manypath beside
each other.

Beside CUBIC both begin at the same time, and the receiving hosts count IP bytes. Flows beside each
other are counted by `perf client --interval`, as user data acknowledged. The first --seconds are a
warm-up and do not count. Beside CUBIC six times as long counts, as in the simulator's scenarios:
shares of 20 s differ by 0.05 from round to round. Beside each other twice as long counts.
"""
import json
from dataclasses import dataclass
from pathlib import Path

import counts
import emulation
import page
import stacks
import table

NAME = "fairness"
TABLES = [
    page.Table("cubic_share", "Share of the CUBIC flow", "CUBIC has", 2, has=lambda case: case.flows is None),
    page.Table("jain", "Jain's index of flows beside each other", "Jain's index", 2, max,
               has=lambda case: case.flows is not None),
    page.Table("used", "Use of the link after the warm-up", "link used", 2, max),
]
FLOWS = (2, 8, 32)
CUBIC_PORT = 9898
LINK_BPS = 20e6
INTERVAL_S = 0.1
# A client that wrote nothing for so long before the others' end has ended.
ENDED_S = 1.0


@dataclass
class Case:
    file: Path
    name: str
    description: str
    # How many flows beside each other; none: one transfer beside CUBIC.
    flows: int | None = None


def cases(options, _directory):
    folder, found = table.FOLDER / "fairness", []
    for file in sorted(folder.glob("cubic-*.toml")):
        found.append(Case(file, *table.title(file)))
    name, description = table.title(folder / "flows.toml")
    for flows in FLOWS:
        # For bounds and options it is flows-2 and so on.
        found.append(Case(folder / f"flows-{flows}.toml", f"{flows} {name}", description, flows))
    return [case for case in found if table.is_wanted(case.file.stem, options.network)]


def length(case, options):
    return (7 if case.flows is None else 3) * options.seconds


def seconds(case, options):
    return length(case, options) + 2


def rate(_case):
    """What the links offer together, in bit/s."""
    return LINK_BPS


def can(case, stack):
    return case.flows is None or stack.is_ours


def measure(case, stack, options, number, directory):
    measured = beside_cubic if case.flows is None else beside_each_other
    return {table.key: None for table in TABLES} | measured(case, stack, options, number, directory)


def beside_cubic(case, stack, options, number, directory):
    go, ours, cubic = (Path(directory, name) for name in ("go", "ours", "cubic"))
    go.unlink(missing_ok=True)
    takes = length(case, options)
    client = emulation.python("tcp.py", "--tcp", "client", "y", CUBIC_PORT, f"{takes:g}", "cubic")
    beside = [("y", emulation.python("tcp.py", "--tcp", "server", CUBIC_PORT, Path(directory, "cubic.out"))),
              ("z", counts.command(ours)), ("y", counts.command(cubic)), ("b", emulation.after(go, client))]
    outcome = stacks.transfer(stack, case.file, options, number, directory, takes, beside=beside, first=f"touch {go}")
    run = {"error": outcome.error, "warnings": outcome.warnings, "links_late_p99_s": outcome.late_p99_s}
    seen = [counts.Counts(ours), counts.Counts(cubic)]
    firsts = [count.first() for count in seen]
    if run["error"] or None in firsts:
        run["error"] = run["error"] or f"nothing arrived by {'CUBIC' if firsts[1] is None else stack.name}"
        return run
    # Both send in all of this time.
    begin, end = max(firsts) + options.seconds, min(firsts) + takes
    received = [count.between(begin, end) for count in seen]
    total = sum(received)
    if total == 0:
        return run | {"error": "nothing arrived after the warm-up"}
    return run | {"cubic_share": received[1] / total, "used": total * 8 / (end - begin) / LINK_BPS}


def beside_each_other(case, stack, options, number, directory):
    servers, clients, outs = [], [], []
    takes = length(case, options)
    for index in range(case.flows):
        outs.append(out := Path(directory, f"client-{index}"))
        out.unlink(missing_ok=True)
        # Longer than the program, which ends them all at the same time: what is in their buffers
        # would take minutes.
        values = {"seconds": f"{2 * takes + stacks.GRACE_S:g}", "port": stacks.PORT + index, "out": "/dev/null"}
        servers.append(("z", stacks.fill(stack.server, **values)))
        clients.append(f"({stacks.fill(stack.client, **values)} --interval {INTERVAL_S}) >{out} &")
    done = emulation.emulate(options, case.file.with_name("flows.toml"), number, directory,
                             f"{' '.join(clients)} sleep {takes:g}", at=servers, limit_s=takes + stacks.GRACE_S)
    run = {"error": done.error, "warnings": done.warnings, "links_late_p99_s": done.late_p99_s}
    window = takes - options.seconds
    written = [out.stat().st_mtime for out in outs if out.exists() and out.stat().st_size]
    if written and max(written) - min(written) > ENDED_S:
        run["error"] = run["error"] or "a flow ended before the others"
    amounts = [amount(out, window) for out in outs]
    if run["error"] or not any(amounts):
        return run | {"error": run["error"] or "no flow carried anything"}
    squares = sum(amount ** 2 for amount in amounts)
    return run | {"jain": sum(amounts) ** 2 / len(amounts) / squares, "used": 8 * sum(amounts) / window / LINK_BPS, "bytes": amounts}


def amount(file, window):
    """User bytes that `perf client` reports of its last seconds; none if it could not connect."""
    # The last line may have been cut off.
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]] if file.exists() else []
    lines = [line for line in lines if "end_s" in line]  # not the result, which comes last
    begin = max((line["end_s"] for line in lines), default=0.0) - window
    # By their middle, because a busy machine ends intervals a little late.
    return sum(line["bytes"] for line in lines if (line["begin_s"] + line["end_s"]) / 2 >= begin)
