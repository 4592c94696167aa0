#!/usr/bin/env python3
"""The simulator beside ns-2: CPU time and memory of N flows over a dumbbell, as ratios.

    sudo apt-get install ns2
    python3 bench/worlds/ns2.py --manypath target/dist/manypath [--flows 10,100,1000] [--rounds 3] [--json]

A round runs ns-2 and then the simulator, each a process of one thread. CPU time (user and system, start-up included) and
peak resident memory are the kernel's (wait4). CPU is compared for each megabyte of user data delivered, because the
transports do not fill the link alike.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SECONDS = 20
TIMEOUT_S = 600


def run(command):
    """Output, CPU seconds and peak memory in MiB of a process."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"failed: {' '.join(map(str, command))}")
        out.seek(0)
        return out.read().decode(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def ns2(flows):
    out, cpu, memory = run(["timeout", str(TIMEOUT_S), "ns", FOLDER / "dumbbell.tcl", "-flows", str(flows), "-until", str(SECONDS)])
    return int(out.split("bytes=")[1].split()[0]), cpu, memory


def ours(manypath, flows):
    sets = [f"flow.all.copies={flows}", f"link.bottleneck.rate={flows} Mbit/s", f"time_limit={SECONDS} s"]
    command = ["timeout", str(TIMEOUT_S), manypath, "sim", "run", FOLDER / "dumbbell.toml", "--json", "--jobs", "1"]
    out, cpu, memory = run(command + [part for text in sets for part in ("--set", text)])
    return json.loads(out)["groups"]["all"]["bytes"], cpu, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--manypath", default="target/dist/manypath")
    parser.add_argument("--flows", default="10,100,1000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if subprocess.run(["sh", "-c", "command -v ns"], stdout=subprocess.DEVNULL).returncode != 0:
        sys.exit("there is no program `ns`: sudo apt-get install ns2")
    if not options.json:
        print("flows  ns-2: MB, CPU s, MiB   simulator: MB, CPU s, MiB   ns-2 / simulator: CPU per MB, MiB")
    for flows in map(int, options.flows.split(",")):
        rounds = [(ns2(flows), ours(options.manypath, flows)) for _ in range(options.rounds)]
        them, us = ([statistics.median(values) for values in zip(*side)] for side in zip(*rounds))
        ratios = [them[1] / them[0] / (us[1] / us[0]), them[2] / us[2]]
        if options.json:
            print(json.dumps({"flows": flows, "ns2": them, "simulator": us, "ratios": ratios}))
        else:
            row = [f"{bytes / 1e6:8.1f} {cpu:8.2f} {memory:8.1f}" for bytes, cpu, memory in (them, us)]
            print(f"{flows:5}  {row[0]}   {row[1]}   {ratios[0]:8.2f} {ratios[1]:6.2f}", flush=True)


if __name__ == "__main__":
    main()
