#!/usr/bin/env python3
"""Measures the simulator and ns-2 side by side: CPU time of the whole process for the same transfer.

Each round is one run of ns-2, then one of the simulator, on one core each. The CPU time, user and system, and the peak memory of a
process come from the kernel (wait4). README.md says what the cases are and how to read the result.
Needs Python 3.11, ns-2 (`ns`) and cargo; standard library only.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAYLOAD = 1452  # user bytes of a full DATA chunk on both sides

# name: (megabytes, loss on either path, result fields on both sides, the ratio that is required)
CASES = {
    "fields": (8, (0.01, 0.07), True, 10.0),
    "bare": (256, (0.0, 0.0), False, 3.0),
}
# The two sides simulate the same transfer if their mean times differ by at most this: without loss nothing is random; with
# loss the seeds draw differently, and a transfer of 8 MB varies by some 15 % from seed to seed.
TOLERANCE = {"fields": 0.15, "bare": 0.03}


class BenchError(Exception):
    """Something needed is missing or did not work; the message says what, and what to try."""


def measure(command):
    """Runs a command; its output, CPU seconds, and peak resident memory in MiB."""
    child = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    if child.returncode != 0:
        raise BenchError(f"{' '.join(map(str, command))} ended with {child.returncode}")
    return out.decode(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


class Ns2:
    def __init__(self, program):
        self.program = program
        self.ends = {}  # of the transfers that were watched, in simulated seconds

    def once(self, megabytes, loss, seed, observe, until=None):
        size = megabytes * 1_000_000
        command = [self.program, HERE / "transfer.tcl", "-bytes", size, "-loss1", loss[0], "-loss2", loss[1],
                   "-seed", seed, "-observe", int(observe)]
        out, cpu_s, rss_mib = measure(command + (["-until", until] if until else []))
        fields = dict(pair.split("=", 1) for pair in out.split())
        return fields, cpu_s, rss_mib

    def run(self, megabytes, loss, fields, seed):
        watched = None
        if not fields and (key := (megabytes, loss, seed)) not in self.ends:
            # ns-2 does not know when it is done: a watched run says when to stop a bare one.
            watched, *_ = self.once(megabytes, loss, seed, True)
            self.ends[key] = watched
        seen, cpu_s, rss_mib = self.once(megabytes, loss, seed, fields, None if fields else self.ends[key]["end_s"])
        chunks = -(-megabytes * 1_000_000 // PAYLOAD)
        watched = seen if fields else self.ends[key]
        if watched["complete"] != "1" or int(seen["highest_tsn"]) != chunks:
            raise BenchError(f"ns-2 sent {seen['highest_tsn']} of {chunks} DATA chunks")
        packets = sum(int(watched[f"path{p}_packets"]) for p in (1, 2))
        return {"cpu_s": cpu_s, "rss_mib": rss_mib, "chunks": chunks, "sent": packets,
                "transfer_s": float(watched["last_s"]) - float(watched["started_s"])}


class Simulator:
    def __init__(self, program):
        self.program = program

    def run(self, megabytes, loss, fields, seed):
        command = [self.program, megabytes, "--loss", f"{loss[0]},{loss[1]}", "--seed", seed, "--json"]
        out, cpu_s, rss_mib = measure(command)
        run = json.loads(out)
        result = run["result"]
        if not result["completed"]:
            raise BenchError("the simulated transfer did not complete")
        if fields and any(path["spurious_retransmissions"] is None for path in result["paths"]):
            raise BenchError("the simulator did not record all result fields")
        originals = sum(path["data_chunks_sent"] - path["retransmissions"] for path in result["paths"])
        return {"cpu_s": cpu_s, "rss_mib": rss_mib, "chunks": originals, "transfer_s": result["transfer_time_s"],
                "sent": sum(path["packets_sent"] for path in result["paths"]),
                "packets": run["packets"], "events": run["events"], "run_cpu_s": run["run_cpu_s"]}


def compare(name, ns2, simulator, rounds):
    megabytes, loss, fields, required = CASES[name]
    rows = []
    for n in range(rounds):
        # Without loss every seed gives the same transfer, and so the same end.
        seed = n + 1 if any(loss) else 1
        pair = [side.run(megabytes, loss, fields, seed) for side in (ns2, simulator)]
        rows.append(pair)
        print(f"  {n + 1}/{rounds}: ns-2 {pair[0]['cpu_s']:.3f} s, simulator {pair[1]['cpu_s']:.3f} s, "
              f"load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    def middle(side, key):
        return statistics.median(row[side][key] for row in rows)
    def mean(side, key):
        return statistics.fmean(row[side][key] for row in rows)
    if len({row[side]["chunks"] for row in rows for side in (0, 1)}) != 1:
        raise BenchError(f"{name}: the two sides did not send the same number of DATA chunks")
    off = mean(1, "transfer_s") / mean(0, "transfer_s") - 1
    if abs(off) > TOLERANCE[name]:
        raise BenchError(f"{name}: simulated times differ by {off:+.1%}, more than {TOLERANCE[name]:.0%}: not the same transfer")
    return {
        "case": name, "megabytes": megabytes, "loss": list(loss), "rounds": rounds, "required": required,
        "ratio": middle(0, "cpu_s") / middle(1, "cpu_s"),
        "median_of_ratios": statistics.median(row[0]["cpu_s"] / row[1]["cpu_s"] for row in rows),
        "simulated_time_difference": off,
        "ns2": {"cpu_s": middle(0, "cpu_s"), "rss_mib": middle(0, "rss_mib"), "transfer_s": mean(0, "transfer_s"),
                "sender_packets_per_s": middle(0, "sent") / middle(0, "cpu_s")},
        "simulator": {"cpu_s": middle(1, "cpu_s"), "rss_mib": middle(1, "rss_mib"), "transfer_s": mean(1, "transfer_s"),
                      "sender_packets_per_s": middle(1, "sent") / middle(1, "cpu_s"),
                      "packets": middle(1, "packets"), "events": middle(1, "events"), "run_cpu_s": middle(1, "run_cpu_s")},
    }


def memory(simulator):
    """Peak memory of a short and of a sixteen times longer run."""
    runs = {megabytes: simulator.run(megabytes, (0.0, 0.0), False, 1) for megabytes in (256, 4096)}
    return {f"{megabytes}_mb_rss_mib": run["rss_mib"] for megabytes, run in runs.items()}


def show(report):
    for case in report["cases"]:
        ns2, ours = case["ns2"], case["simulator"]
        print(f"\n{case['case']}: {case['megabytes']} MB, loss {case['loss'][0]:.0%} and {case['loss'][1]:.0%}, "
              f"medians of {case['rounds']}")
        print(f"{'':12}{'CPU s':>9}{'packets/s':>12}{'peak MiB':>10}{'simulated s':>13}")
        for label, side in (("ns-2", ns2), ("simulator", ours)):
            print(f"{label:12}{side['cpu_s']:9.3f}{side['sender_packets_per_s']:12,.0f}{side['rss_mib']:10.1f}{side['transfer_s']:13.2f}")
        print(f"ratio {case['ratio']:.1f} (median of the rounds' own ratios {case['median_of_ratios']:.1f}; required {case['required']:g}); "
              f"the simulator's {ours['events']:,.0f} events took {ours['run_cpu_s']:.3f} s")
    if "memory" in report:
        print("\npeak memory: " + ", ".join(f"{k.split('_')[0]} MB: {v:.1f} MiB" for k, v in report["memory"].items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all unless said")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ns", default="ns", help="the ns-2 program")
    parser.add_argument("--bulk", type=pathlib.Path, help="a built example `bulk`; else cargo builds it")
    parser.add_argument("--memory", action="store_true", help="also the peak memory of 256 MB and of 4096 MB")
    parser.add_argument("--require", action="store_true", help="fail if a ratio is below what is required")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if unknown := set(args.cases) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    program = shutil.which(args.ns)
    if program is None:
        raise BenchError(f"{args.ns} not found; install ns-2 with `sudo apt-get install ns2`, or name it with --ns")
    bulk = args.bulk
    if bulk is None:
        build = ["cargo", "build", "--release", "--quiet", "-p", "manypath-sim", "--example", "bulk"]
        subprocess.run(build, cwd=ROOT, check=True)
        bulk = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples/bulk"
    ns2, simulator = Ns2(program), Simulator(bulk)
    report = {"date": time.strftime("%Y-%m-%d"), "cases": []}
    for name in args.cases or CASES:
        print(f"{name}:", file=sys.stderr)
        report["cases"].append(compare(name, ns2, simulator, args.rounds))
    if args.memory:
        report["memory"] = memory(simulator)
    print(json.dumps(report)) if args.json else show(report)
    missed = [case["case"] for case in report["cases"] if case["ratio"] < case["required"]]
    if args.require and missed:
        raise BenchError(f"slower than required: {', '.join(missed)}")


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit(f"run.py: {error}")
