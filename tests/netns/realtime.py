#!/usr/bin/env python3
"""Experiments in real time between network namespaces: the scenarios of kind "realtime", with the `manypath`
command at both ends. See README.md beside this file."""

import argparse
import concurrent.futures
import itertools
import json
import re
import statistics
import sys
import threading
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from failure import Failed, Unavailable  # noqa: E402
from namespaces import Lab, check_machine, remove_leftovers, sh  # noqa: E402
from requirements import add_binary, add_require, skip  # noqa: E402
from transfer import Transfer, make_file  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[2]
KNOWN = ("pf-fig15", "pf-fig16", "pf-fig17")
UNITS = {"B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20,
         "kbit/s": 10**3, "Mbit/s": 10**6, "s": 1, "ms": 1e-3, "%": 1e-2}


def number(text):
    """The value of "45 ms", "10 Mbit/s", "0.3 %"."""
    value, unit = re.fullmatch(r"([0-9.]+) ?(\S+)", text).groups()
    return float(value) * UNITS[unit]


def points(scenario):
    """Pairs (values of the swept parameters, the scenario with them set)."""
    axes = []
    for name, values in scenario.pop("sweep", {}).items():
        rows = [(row["name"], {k: v for k, v in row.items() if k != "name"}) if isinstance(row, dict)
                else (row, {name: row}) for row in values]
        axes.append([(name, label, settings) for label, settings in rows])
    for combination in itertools.product(*axes):
        point = json.loads(json.dumps(scenario))
        for _, _, settings in combination:
            for key, value in settings.items():
                *parts, last = key.split(".")
                at = point
                for part in parts:
                    at = at[int(part) - 1] if isinstance(at, list) else at[part]
                at[last] = value
        yield {name: label for name, label, _ in combination}, point


def connect(lab, path, number_of_path, a, b, seed):
    """The link of a path between two hosts; the process that is the link."""
    n = number_of_path
    options = ["--delay-ms", str(number(path["delay"]) * 1000), "--loss", str(number(path.get("loss", "0 %"))),
               "--seed", str(seed * 100 + n)]
    wire = lab.wire(a, f"a{n}", f"10.91.{n}.1/24", b, f"b{n}", f"10.91.{n}.2/24", None, *options)
    for host, device in ((a, f"a{n}"), (b, f"b{n}")):
        sh("tc", "-n", host, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{int(number(path['rate']))}bit",
           "burst", "3000", "limit", str(int(number(path["queue"]))))
    return wire


def run(name, point, seed, binary, size_file):
    """One transfer; the receiver's result."""
    transport = dict(point["transport"])
    options = ["--profile", transport.pop("profile"), "--preset", transport.pop("preset")]
    # As in the simulator and over emulated links.
    options += [] if point.get("protected") else ["--insecure"]
    transport.pop("udp_encapsulation", None)  # always so on sockets
    for key, value in transport.items():
        options += ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]
    limit = number(point["time_limit"])
    with Lab(name) as lab:
        a, b = lab.host("a"), lab.host("b")
        wires = [connect(lab, path, n, a, b, seed) for n, path in enumerate(point["path"], 1)]
        both = range(1, len(wires) + 1)
        listen = ",".join(f"10.91.{n}.2" for n in both)
        transfer = Transfer(lab, binary, size_file, b, ["--listen", listen, *options])
        timers = []
        for wire, path in zip(wires, point["path"]):
            # A link that does nothing any more, and tells nobody: what enters it waits there for ever.
            for outage in path.get("down", []):
                timers.append(threading.Timer(number(outage["at"]), wire.signal, [19]))
        transfer.start(a, "--bind", ",".join(f"10.91.{n}.1" for n in both), *options)
        for timer in timers:
            timer.start()
        try:
            transfer.wait(limit)
        finally:
            for timer in timers:
                timer.cancel()
        # As in the paper, what the receiver saw counts; how the sender ended is told beside it.
        result = transfer.result(transfer.recv)
        if transfer.recv.code != 0 or not result.get("completed"):
            ends = (("sender", transfer.send), ("receiver", transfer.recv))
            raise Failed("\n".join(f"{name}: exit code {end.code}; said: {end.said()}" for name, end in ends))
        return {**result, "sender_exit_code": transfer.send.code}


def earlier(folder, name):
    """Mean goodput by variant and point of `manypath lab run`."""
    found = {}
    file = folder / name / "runs.jsonl"
    for line in file.read_text().splitlines() if file.exists() else []:
        row = json.loads(line)
        found.setdefault(row["variant"], []).append(row)
    return found


def mean_of(rows, params):
    """Mean goodput in Mbit/s of the rows at a point, as text."""
    own = [row["goodput_bps"] for row in rows if all(row.get(k) == v for k, v in params.items())]
    return f"{statistics.mean(own) / 1e6:6.2f}" if own else "     -"


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("id", nargs="*", default=list(KNOWN), help=f"experiments [default: {' '.join(KNOWN)}]")
    add_binary(parser)
    parser.add_argument("--results", default="lab-results", help="of `manypath lab run`, to be shown beside")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each point [default: 2]")
    parser.add_argument("--together", type=int, default=6, help="transfers at a time [default: 6]")
    parser.add_argument("--where", action="append", default=[], metavar="NAME=VALUE", help="only points with this value")
    parser.add_argument("--json", action="store_true", help="prints one JSON object a run")
    add_require(parser)
    return parser.parse_args()


def main():
    options = parse()
    try:
        check_machine()
    except Unavailable as why:
        return skip(options, f"real time between network namespaces: {why}")
    remove_leftovers()
    binary = options.binary
    wanted = [text.split("=", 1) for text in options.where]
    jobs = []
    for name in options.id:
        text = (REPOSITORY / "experiments/000-cmt-pf" / name / "scenario.toml").read_text()
        for params, point in points(tomllib.loads(text)):
            if all(params.get(key) == value for key, value in wanted):
                jobs += [(name, params, point, seed) for seed in range(1, options.seeds + 1)]
    with Lab("realtime-files") as files:
        sizes = {int(number(point["transfer"]["size"])) for _, _, point, _ in jobs}
        content = {size: files.dir / f"{size}.bin" for size in sizes}
        for size, path in content.items():
            make_file(path, size)

        def one(numbered):
            index, (name, params, point, seed) = numbered
            size = int(number(point["transfer"]["size"]))
            try:
                return run(f"rt{index}", point, seed, binary, content[size])
            except Failed as why:
                return {"failure": str(why)}

        with concurrent.futures.ThreadPoolExecutor(options.together) as pool:
            results = list(pool.map(one, enumerate(jobs)))
    failed = tell(options, jobs, results)
    print(f"{len(jobs) - failed} of {len(jobs)} transfers between namespaces were complete", file=sys.stderr)
    return 1 if failed else 0


def tell(options, jobs, results):
    """Prints the outcome; how many failed."""
    rows = [{**result, "experiment": name, **params, "seed": seed}
            for (name, params, _, seed), result in zip(jobs, results)]
    for row in rows if options.json else []:
        print(json.dumps(row))
    good = [row for row in rows if "failure" not in row]
    for row in good:
        if row["sender_exit_code"] != 0:
            print(f"note: {row['experiment']} seed {row['seed']}: everything was received, but the sender ended with exit code"
                  f" {row['sender_exit_code']}", file=sys.stderr)
    for row in rows:
        if "failure" in row:
            print(f"FAILED {row['experiment']} seed {row['seed']}: {row['failure']}", file=sys.stderr)
    if not options.json:
        print("goodput in Mbit/s, and time in namespaces: namespaces, emulated in user space, simulated")
        seen = []
        for name, params, _, _ in jobs:
            if (name, params) in seen:
                continue
            seen.append((name, params))
            own = [row for row in good if row["experiment"] == name and all(row[k] == v for k, v in params.items())]
            times = [row["transfer_time_s"] for row in own]
            before = earlier(Path(options.results), name)
            point = ", ".join(f"{key} = {value}" for key, value in params.items())
            time = f"{statistics.mean(times):6.1f} s" if times else "     - "
            shown = [mean_of(own, params), *(mean_of(before.get(v, []), params) for v in ("scenario", "simulated"))]
            print(f"{name}  {'  '.join(shown)}  {time}  {point}")
    return len(rows) - len(good)


if __name__ == "__main__":
    sys.exit(main())
