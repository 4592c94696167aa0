#!/usr/bin/env python3
"""manypath over the networks of the comparison, in the simulator: no root, no other system, the
same figures each time.

    cargo build --profile checks -p manypath-cli
    python3 bench/paths/simulate.py --manypath target/checks/manypath
    python3 bench/paths/simulate.py --require --random 10               # fails below the bounds of floors.toml
    python3 bench/paths/simulate.py --measure full --require            # the same without encryption, from 3 s on
    python3 bench/paths/simulate.py --against result.json --within 5    # of run.py --json: shares within 5 %
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import tomllib

import page
import table
import throughput

HERE = pathlib.Path(__file__).resolve().parent

# What can be measured, by the names of the bounds in floors.toml: with encryption or without, and from when on.
MEASURES = {"share": ("true", 0), "plain": ("false", 0), "full": ("false", 3)}


class SimulationError(Exception):
    """The simulator ended with an error; the message is its own."""


def results(options, network, seconds):
    """The results of runs of this length, one for each seed."""
    protected, _ = MEASURES[options.measure]
    command = [str(options.manypath), "sim", "run", str(network.file), "--json", "--seeds", str(options.rounds)]
    settings = [f"time_limit={seconds:g} s", f"protected={protected}", "transport.profile=fast", f"transport.preset={options.preset}"]
    settings += [f"transport.{setting}" for setting in options.set]
    command += [word for setting in settings for word in ("--set", setting)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SimulationError(f"{network.file.name}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def runs(options, network, emulated=None):
    """The share of what is offered and the longest gap of each seed.

    Real transfers count from the arrival of their first message, and until the last one: with the medians of emulated
    ones so do these.
    """
    _, begin = MEASURES[options.measure]
    end = options.seconds
    if emulated:
        begin = results(options, network, options.seconds)[0]["first_byte_s"] or 0
        end = begin + emulated["seconds"]
    found = results(options, network, end)
    # The same seed gives the same run: a shorter one tells what was delivered until then.
    before = [r["bytes"] for r in results(options, network, begin)] if begin else [0] * len(found)
    offered = end * network.offered_bps(end) - begin * network.offered_bps(begin)
    return [(8 * (r["bytes"] - had) / offered, r["max_delivery_gap_s"]) for r, had in zip(found, before)]


def median(options, network, emulated=None):
    of_seeds = runs(options, network, emulated)
    shares, gaps = zip(*of_seeds)
    return {
        "network": network.name, "stack": options.preset, "rounds": len(of_seeds), "share": statistics.median(shares),
        "share_min": min(shares), "share_max": max(shares), "max_delivery_gap_s": statistics.median(gaps), "failed": 0, "late": 0,
    }


def below_floors(options, networks, medians):
    """What is below its bounds, in words."""
    floors = tomllib.loads((HERE / "floors.toml").read_text(encoding="utf-8"))
    for network, found in zip(networks, medians):
        floor = floors.get(network.file.stem)
        if floor is None:
            yield f"{network.name}: floors.toml says nothing of {network.file.stem}"
            continue
        least = floor[options.measure]
        if found["share"] < least:
            yield f"{network.name}: {found['share']:.3f} of what the links offer, less than {least} ({options.measure})"
        if found["max_delivery_gap_s"] > floor["gap_s"]:
            yield f"{network.name}: a gap of {found['max_delivery_gap_s']:.3f} s, more than {floor['gap_s']} s"


def emulated_medians(options):
    """The medians of the emulated transfers with which the simulated ones are compared, by network."""
    if not options.against:
        return {}
    measured = json.loads(options.against.read_text(encoding="utf-8"))["throughput"]
    found = {m["network"]: dict(m) for m in measured["medians"] if m["stack"] == options.system}
    if not found:
        raise SimulationError(f"{options.against} has no system {options.system}")
    for name, own in found.items():
        lengths = [run["seconds"] for run in measured["runs"] if (run["network"], run["stack"]) == (name, options.system) and run["seconds"]]
        own["seconds"] = statistics.median(lengths) if lengths else options.seconds
    return found


def unlike(options, emulated, medians):
    """Where emulated transfers and simulated ones differ by more than --within, in words."""
    for found in medians:
        other = emulated.get(found["network"])
        if other is None:
            continue
        by = 100 * (found["share"] / other["share"] - 1) if other["share"] else float("inf")
        print(f"{found['network']:<42} simulated {found['share']:.3f}, emulated {other['share']:.3f}: {by:+.1f} %")
        if abs(by) > options.within:
            yield f"{found['network']}: simulated and emulated differ by {abs(by):.1f} %"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manypath", type=pathlib.Path, default=HERE.parents[1] / "target/dist/manypath",
                        help="the program [default: target/dist/manypath]")
    parser.add_argument("--preset", default="adaptive", help="[default: adaptive]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a transport parameter; repeatable")
    parser.add_argument("--network", action="append", metavar="PATTERN", help="only the networks with such file names; repeatable")
    parser.add_argument("--scenario", action="append", default=[], metavar="FILE", help="this network in place of the table; repeatable")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="also N networks drawn at random")
    parser.add_argument("--random-seed", type=int, default=1, metavar="N", help="the seed of these [default: 1]")
    parser.add_argument("--measure", choices=MEASURES, default="share",
                        help="share: encrypted; plain: without encryption, which takes 0.02; full: plain, from 3 s on [default: share]")
    parser.add_argument("--rounds", type=int, default=5, help="seeds [default: 5]")
    parser.add_argument("--seconds", type=float, default=10, help="length of each run [default: 10]")
    parser.add_argument("--require", action="store_true", help="fails if a median is below its bound in floors.toml")
    parser.add_argument("--against", type=pathlib.Path, metavar="RESULT.json", help="the output of run.py --json")
    parser.add_argument("--system", default="manypath", help="the system in RESULT.json [default: manypath]")
    parser.add_argument("--within", type=float, default=5, metavar="PERCENT", help="largest difference of shares [default: 5]")
    parser.add_argument("--json", action="store_true", help="prints the medians as one JSON object")
    return parser.parse_args()


def main():
    options = parse()
    try:
        with tempfile.TemporaryDirectory() as directory:
            drawn = table.draw(options.random, options.random_seed, directory)
            networks = table.chosen(options.scenario, options.network, drawn)
            if not networks:
                raise table.NetworkError("no network has a name like that")
            emulated = emulated_medians(options)
            medians = [median(options, network, emulated.get(network.name)) for network in networks]
    except (SimulationError, table.NetworkError, OSError) as why:
        print(f"bench/paths: {why}", file=sys.stderr)
        return 1
    print(json.dumps({"medians": medians}, indent=1) if options.json else page.tables(throughput.TABLES, networks, [options.preset], medians))
    wrong = list(below_floors(options, networks, medians)) if options.require else []
    if options.against:
        wrong += unlike(options, emulated, medians)
    for text in wrong:
        print(f"FAILED: {text}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
