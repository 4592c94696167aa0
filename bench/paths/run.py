#!/usr/bin/env python3
"""Compares manypath with other transports over emulated networks: throughput, latency, fairness,
standing queues, outages.

Each round is one transfer by each system over each network, in turn, through `manypath emulate`.
Medians of the rounds. Needs Linux, root, /dev/net/tun, iproute2 and Python 3.11. README.md says how
to read the result, and what it costs.

    cargo build --profile dist
    python3 bench/paths/run.py --page page.md
    python3 bench/paths/run.py --measure throughput --network loss --only manypath --only mptcp-bbr
    python3 bench/paths/run.py --measure latency,fairness --quick
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import signal
import sys
import tempfile

import bounds
import emulation
import fairness
import latency
import outages
import page
import stacks
import standing_queue
import table
import throughput

HERE = pathlib.Path(__file__).resolve().parent
MEASUREMENTS = {module.NAME: module for module in (throughput, latency, fairness, standing_queue, outages)}
# The rounds and seconds of --quick.
QUICK = (1, 3)
# Beside others run only networks whose links have less than this together, in bit/s.
ALONE_FROM = 100e6


def interrupt(*_):
    raise KeyboardInterrupt


def unavailable():
    """Why nothing can run here; None if it can."""
    if sys.platform != "linux" or not os.path.exists("/dev/net/tun"):
        return "needs Linux and /dev/net/tun"
    if os.geteuid() != 0:
        return "needs root"
    return None


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manypath", type=pathlib.Path, default=HERE.parents[1] / "target/dist/manypath",
                        help="the program to measure, which also emulates the links [default: target/dist/manypath]")
    parser.add_argument("--measure", metavar="NAME,...", help=f"[default: all: {','.join(MEASUREMENTS)}]")
    parser.add_argument("--ours", action="append", metavar="NAME=OPTIONS",
                        help="options of manypath for both ends, such as 'bbr=--set congestion_control=bbr'; repeatable "
                             f"[default: {', '.join(map(repr, stacks.OURS))}]")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help=f"measures only this system: one of --ours, {', '.join(stacks.OTHERS)}, a peer; repeatable")
    parser.add_argument("--network", action="append", metavar="PATTERN", help="only the networks with such file names; repeatable")
    parser.add_argument("--scenario", action="append", default=[], metavar="FILE",
                        help="this network in place of the table of throughput; repeatable")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="throughput also over N networks drawn at random")
    parser.add_argument("--random-seed", type=int, default=1, metavar="N", help="the seed of these [default: 1]")
    parser.add_argument("--rounds", type=int, help="transfers of each system over each network [default: 5]")
    parser.add_argument("--seconds", type=float, help="how long each transfer sends; seven times that beside CUBIC, three "
                                                      "times beside each other, twice for latency and outages [default: 10]")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="so many transfers at once, over networks of less than 100 Mbit/s; watch for late links [default: 1]")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK[0]} round and {QUICK[1]} s, unless these are given")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "target/bench", help="where to build the usrsctp program")
    parser.add_argument("--json", action="store_true", help="prints one JSON object instead of the tables")
    parser.add_argument("--page", type=pathlib.Path, metavar="FILE.md", help="also writes the result as a page")
    parser.add_argument("--require", action="store_true", help="fails if a median is outside of the bounds of bounds.toml")
    parser.add_argument("--system", metavar="NAME", help="the system that must keep them [default: the first of ours]")
    options = parser.parse_args()
    rounds, seconds = QUICK if options.quick else (5, 10)
    options.rounds = rounds if options.rounds is None else options.rounds
    options.seconds = seconds if options.seconds is None else options.seconds
    if options.rounds < 1 or not 0.5 <= options.seconds <= 600 or not 0 <= options.random <= 1000:
        parser.error("--rounds is at least 1, --seconds from 0.5 to 600, --random from 0 to 1000")
    if not 1 <= options.jobs <= 64:
        parser.error("--jobs is from 1 to 64")
    names = options.measure.split(",") if options.measure else list(MEASUREMENTS)
    for name in names:
        if name not in MEASUREMENTS:
            parser.error(f"--measure {name}: not one of {', '.join(MEASUREMENTS)}")
    options.measurements = [MEASUREMENTS[name] for name in dict.fromkeys(names)]
    return options


def planned(options, compared, directory):
    """The measurements with their networks, and all transfers in order."""
    plan = [(measurement, measurement.cases(options, directory)) for measurement in options.measurements]
    for measurement, cases in plan:
        if not cases and not options.network:
            print(f"without {measurement.NAME}: transfers of {options.seconds:g} s are too short", file=sys.stderr)
    plan = [(measurement, cases) for measurement, cases in plan if cases]
    if not plan:
        raise table.NetworkError("no network has a name like that, or fits into the time")
    transfers = [(measurement, number, case, stack) for number in range(1, options.rounds + 1) for measurement, cases in plan
                 for case in cases for stack in compared if measurement.can(case, stack)]
    return plan, transfers


def batches(options, transfers):
    """Groups of transfers that run at once, in order. A transfer over fast links runs alone."""
    def most(transfer):
        measurement, _, case, _ = transfer
        return 1 if measurement.rate(case) >= ALONE_FROM else min(options.jobs, getattr(measurement, "AT_ONCE", options.jobs))

    batch = []
    for transfer in transfers:
        if batch and len(batch) >= min(map(most, (*batch, transfer))):
            yield batch
            batch = []
        batch.append(transfer)
    if batch:
        yield batch


def run_one(options, transfer):
    """One transfer, in a directory of its own."""
    measurement, number, case, stack = transfer
    run = {"network": case.name, "case": case.file.stem, "stack": stack.name, "round": number, "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="manypath-paths-") as directory:
        run |= measurement.measure(case, stack, options, number, directory)
    said = page.described(measurement.TABLES, run)
    print(f"{measurement.NAME:<14} {case.name:<40} {stack.name:<15} {number}  {said}", file=sys.stderr, flush=True)
    return run


def run_all(options, transfers):
    """The runs of each measurement; after an interruption those until then."""
    groups = list(batches(options, transfers))
    minutes = sum(max(measurement.seconds(case, options) for measurement, _, case, _ in group) for group in groups) / 60
    print(f"{len(transfers)} measurements: about {minutes:.0f} minutes", file=sys.stderr)
    runs = {measurement.NAME: [] for measurement in options.measurements}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        try:
            for group in groups:
                for transfer, run in zip(group, pool.map(lambda transfer: run_one(options, transfer), group)):
                    runs[transfer[0].NAME].append(run)
        except KeyboardInterrupt:
            emulation.stop_all()
            print(f"interrupted; the result is that of {sum(map(len, runs.values()))} of {len(transfers)}", file=sys.stderr)
    return runs


def required(options, compared, medians):
    """Prints the bounds that are missed; the exit code."""
    own = [stack.name for stack in compared if stack.is_ours]
    system = options.system or next(iter(own), None)
    peers, wrong, looked = {stack.name for stack in compared} - set(own), [], 0
    known = bounds.load()
    for name, of_measurement in medians.items():
        more, count = bounds.violations(known, name, of_measurement, system, peers)
        wrong, looked = wrong + more, looked + count
    if looked == 0:
        print(f"FAILED: no bound was looked at; the system is {system}", file=sys.stderr)
        return 1
    for text in wrong:
        print(f"FAILED: {text}", file=sys.stderr)
    print(f"{system}: {looked - len(wrong)} of {looked} bounds kept", file=sys.stderr)
    return int(bool(wrong))


def main():
    options = parse()
    # SIGINT is ignored in the background of a shell.
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    options.manypath = options.manypath.resolve()
    if why := unavailable():
        print(f"bench/paths: {why}", file=sys.stderr)
        return 1
    if not os.access(options.manypath, os.X_OK):
        print(f"bench/paths: no manypath program at {options.manypath}: build it with `cargo build --profile dist`, or name it "
              "with --manypath", file=sys.stderr)
        return 1
    try:
        compared, missing = stacks.chosen(options)
        for name, why in missing.items():
            print(f"without {name}: {why}", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="manypath-paths-") as directory:
            plan, transfers = planned(options, compared, directory)
            runs = run_all(options, transfers)
    except (stacks.StackError, table.NetworkError, bounds.BoundsError) as why:
        print(f"bench/paths: {why}", file=sys.stderr)
        return 1
    plan = [(measurement, cases) for measurement, cases in plan if runs[measurement.NAME]]
    if not plan:
        return 1
    medians = {measurement.NAME: page.summarise(measurement.TABLES, runs[measurement.NAME]) for measurement, _ in plan}
    parts = [(measurement, cases, page.tables(measurement.TABLES, cases, [stack.name for stack in compared],
                                              medians[measurement.NAME]), runs[measurement.NAME]) for measurement, cases in plan]
    if options.json:
        found = {name: {"runs": runs[name], "medians": medians[name]} for name in medians}
        print(json.dumps({"seconds": options.seconds, **found}, indent=1))
    else:
        print("\n\n".join(text for _, _, text, _ in parts))
    if options.page:
        options.page.write_text(page.page(options, parts), encoding="utf-8")
    if not options.require:
        return 0
    is_whole = sum(map(len, runs.values())) == len(transfers)
    return required(options, compared, medians) or int(not is_whole)


if __name__ == "__main__":
    sys.exit(main())
