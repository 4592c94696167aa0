#!/usr/bin/env python3
"""Compares manypath with other transports over emulated networks of several paths: throughput as a share of what the links
offer, and the longest gap between two deliveries.

Each round is one transfer by each system over each network, in turn, through `manypath emulate`. Medians of the rounds.
Needs Linux, root, /dev/net/tun, iproute2 and Python 3.11. README.md says how to read the result, and what it costs.

    cargo build --profile dist
    python3 bench/paths/run.py --rounds 3 --page page.md
    python3 bench/paths/run.py --network loss --ours 'bbr=--set congestion_control=bbr' --only bbr --only mptcp-bbr
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import sys
import tempfile

import table
import page
import stacks

HERE = pathlib.Path(__file__).resolve().parent
OURS = ["manypath=", "manypath-cmt-pf=--preset cmt-pf"]
OTHERS = ["mptcp-cubic", "mptcp-bbr", "usrsctp"]


def interrupt(*_):
    raise KeyboardInterrupt


def unavailable():
    """Why nothing can run here; None if it can."""
    if sys.platform != "linux" or not os.path.exists("/dev/net/tun"):
        return "needs Linux and /dev/net/tun"
    if os.geteuid() != 0:
        return "needs root"
    return None


def chosen_stacks(options):
    """The systems to compare. Those that cannot run here are named, and are errors if they were asked for."""
    wanted = {}
    for text in options.ours or OURS:
        label, _, arguments = text.partition("=")
        wanted[label] = lambda label=label, arguments=arguments: stacks.ours(label, options.manypath, arguments)
    for control in ("cubic", "bbr"):
        wanted[f"mptcp-{control}"] = lambda control=control: stacks.mptcp(f"mptcp-{control}", control)
    wanted["usrsctp"] = lambda: stacks.usrsctp("usrsctp", options.build.resolve())
    for stack in stacks.peers(os.environ.get(stacks.PEER_VARIABLE, "")):
        wanted[stack.name] = lambda stack=stack: stack
    for name in options.only or ():
        if name not in wanted:
            raise stacks.StackError(f"no system {name}; there are {', '.join(wanted)}")
    found = []
    for name in options.only or wanted:
        try:
            found.append(wanted[name]())
        except stacks.StackError as why:
            if options.only:
                raise
            print(f"without {name}: {why}", file=sys.stderr)
    return found


def chosen_networks(options, directory):
    drawn = table.draw(options.random, options.random_seed, directory)
    return table.chosen(options.scenario, options.network, drawn)


def measure(stack, network, options, number, directory):
    load = os.getloadavg()[0]
    outcome = stacks.transfer(stack, network, options, number, directory)
    offered = network.offered_bps(outcome.seconds)
    # A transfer that did not come to its end does not count for what it delivered before.
    is_good = outcome.error is None and offered > 0
    return {
        "network": network.name, "stack": stack.name, "round": number, "load": load,
        "share": outcome.bytes * 8 / outcome.seconds / offered if is_good else 0.0,
        "mbit_per_s": outcome.bytes * 8 / outcome.seconds / 1e6 if is_good else 0.0,
        "offered_mbit_per_s": offered / 1e6, "bytes": outcome.bytes, "seconds": outcome.seconds,
        "max_delivery_gap_s": outcome.gap_s, "error": outcome.error,
        "links_late_p99_s": outcome.late_p99_s, "warnings": outcome.warnings,
    }


def summarise(runs):
    """The medians of each network and system."""
    medians = []
    for network, stack in dict.fromkeys((run["network"], run["stack"]) for run in runs):
        own = [run for run in runs if (run["network"], run["stack"]) == (network, stack)]
        gaps = [run["max_delivery_gap_s"] for run in own if run["error"] is None and run["max_delivery_gap_s"] is not None]
        shares = [run["share"] for run in own]
        medians.append({
            "network": network, "stack": stack, "rounds": len(own), "share": statistics.median(shares),
            "share_min": min(shares), "share_max": max(shares),
            "max_delivery_gap_s": statistics.median(gaps) if gaps else None,
            "failed": sum(run["error"] is not None for run in own),
            "late": sum(bool(run["warnings"]) for run in own),
        })
    return medians


def described(run):
    if run["error"] is not None:
        return f"FAILED: {run['error']}"
    gap = run["max_delivery_gap_s"]
    late = "; the links were late" if run["warnings"] else ""
    return (f"{run['share']:.3f} of {run['offered_mbit_per_s']:.1f} Mbit/s, longest gap "
            f"{'unknown' if gap is None else f'{gap:.3f} s'}, load {run['load']:.1f}{late}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manypath", type=pathlib.Path, default=HERE.parents[1] / "target/dist/manypath",
                        help="the program to measure, which also emulates the links [default: target/dist/manypath]")
    parser.add_argument("--ours", action="append", metavar="NAME=OPTIONS",
                        help="options of manypath for both ends, such as 'bbr=--set congestion_control=bbr'; repeatable "
                             "[default: none, and --preset cmt-pf]")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help=f"measures only this system: one of --ours, {', '.join(OTHERS)}, a peer; repeatable")
    parser.add_argument("--network", action="append", metavar="PATTERN", help="only the networks with such file names; repeatable")
    parser.add_argument("--scenario", action="append", default=[], metavar="FILE", help="this network in place of the table; repeatable")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="also N networks drawn at random")
    parser.add_argument("--random-seed", type=int, default=1, metavar="N", help="the seed of these [default: 1]")
    parser.add_argument("--rounds", type=int, default=3, help="transfers of each system over each network [default: 3]")
    parser.add_argument("--seconds", type=float, default=10, help="how long each transfer sends [default: 10]")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "target/bench", help="where to build the usrsctp program")
    parser.add_argument("--json", action="store_true", help="prints one JSON object instead of the table")
    parser.add_argument("--page", type=pathlib.Path, metavar="FILE.md", help="also writes the result as a page")
    options = parser.parse_args()
    if options.rounds < 1 or not 0.5 <= options.seconds <= 600 or not 0 <= options.random <= 1000:
        parser.error("--rounds is at least 1, --seconds from 0.5 to 600, --random from 0 to 1000")
    return options


def run_all(options, directory):
    compared, networks = chosen_stacks(options), chosen_networks(options, directory)
    count = len(networks) * options.rounds * len(compared)
    print(f"{count} transfers of {options.seconds:g} s: about {count * (options.seconds + 1.5) / 60:.0f} minutes", file=sys.stderr)
    runs = []
    try:
        for number in range(1, options.rounds + 1):
            for network in networks:
                for stack in compared:
                    runs.append(run := measure(stack, network, options, number, directory))
                    print(f"{network.name:<42} {stack.name:<14} {number}  {described(run)}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"interrupted; the result is that of {len(runs)} of {count} transfers", file=sys.stderr)
    return networks, [stack.name for stack in compared], runs


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
        with tempfile.TemporaryDirectory(prefix="manypath-paths-") as directory:
            networks, names, runs = run_all(options, directory)
    except (stacks.StackError, table.NetworkError) as why:
        print(f"bench/paths: {why}", file=sys.stderr)
        return 1
    if not runs:
        return 1
    medians = summarise(runs)
    text = page.tables(networks, names, medians)
    print(json.dumps({"seconds": options.seconds, "runs": runs, "medians": medians}, indent=1) if options.json else text)
    if options.page:
        options.page.write_text(page.page(options, networks, text, runs), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
