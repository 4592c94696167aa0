#!/usr/bin/env python3
"""Runs for hours what `./check` runs for seconds: fuzzing, random operations, disk faults, kills. Then it installs
each kind of package once.

    tests/nightly/run.py [--hours H] [--seed N] [--parts PART...] [--families FAMILY...] [--no-build]

Seeds go on from N, by default a number made of the date, so that each night sees new runs. Every failure is
named with the command that repeats it, and the exit code is 1 then. The result is one line, printed and appended
to target/nightly/results.txt.
"""

import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "target" / "nightly" / "results.txt"
EXAMPLES = ROOT / "target" / "checks" / "examples"
FUZZ = ROOT / "fuzz"
# Parts of the time. The engine has by far the most states.
SHARES = {"fuzz": 0.5, "random": 0.3, "disk": 0.1, "kill": 0.1}
# Takes the time that it takes, after the others.
ONCE = ["installs"]
FUZZ_SHARES = {"engine": 6}
FAMILIES = ["plain", "nr-sack", "redundant", "combined", "adaptive", "ranked", "candidates", "protected", "slow",
            "reconfigured", "limited", "extended"]
RANDOM_RUNS = 400
DISK_RUNS = 5000
KILLS = 20


def call(*command, **environment):
    """Runs a command from the root; whether it succeeded and what it printed."""
    done = subprocess.run(
        [str(word) for word in command], cwd=ROOT, env={**os.environ, **environment},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )
    return done.returncode == 0, done.stdout


def build():
    """Builds everything first, so that only running is timed."""
    features = ["--features", "manypath-files/testing", "--example", "random_ops", "--example", "disk_faults"]
    for command in [
        ["cargo", "build", "--profile", "checks", "-p", "manypath-sim", "-p", "manypath-files", *features],
        ["cargo", "test", "-p", "manypath-cli", "--test", "kill", "--no-run"],
        ["cargo", "fuzz", "build"],
    ]:
        # libFuzzer needs nightly features of a stable compiler. What is built with the variable and without
        # is not the same to cargo, so the others must not have it.
        done, said = call(*command, **({"RUSTC_BOOTSTRAP": "1"} if "fuzz" in command else {}))
        if not done:
            sys.exit(f"{' '.join(command)} failed:\n{said[-3000:]}")


class Night:
    """What was run and what failed."""

    def __init__(self, seed, families):
        self.seed = seed
        self.families = families
        self.counts = {}
        self.failures = []

    def count(self, what, number):
        self.counts[what] = self.counts.get(what, 0) + number

    def fail(self, command, said):
        print(f"FAILED: {command}\n{said[-4000:]}", file=sys.stderr, flush=True)
        self.failures.append(command)

    def fuzz(self, seconds):
        done, said = call("cargo", "fuzz", "list")
        targets = said.split()
        assert done and targets, said
        whole = sum(FUZZ_SHARES.get(target, 1) for target in targets)
        binaries = next(FUZZ.glob("target/*/release"))
        for target in targets:
            limit = max(1, int(seconds * FUZZ_SHARES.get(target, 1) / whole))
            found = FUZZ / "target" / "corpus" / target
            artifacts = FUZZ / "artifacts" / target
            for directory in (found, artifacts):
                directory.mkdir(parents=True, exist_ok=True)
            done, said = call(
                binaries / target, found, FUZZ / "corpus" / target, f"-artifact_prefix={artifacts}/",
                f"-max_total_time={limit}", "-max_len=2048", "-print_final_stats=1", "-verbosity=1",
            )
            executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", said)
            self.count(f"inputs of {target}", int(executed.group(1)) if executed else 0)
            if not done or not executed:
                self.fail(f"cargo fuzz run {target}", said)

    def random(self, seconds):
        end, seed = time.monotonic() + seconds, self.seed
        while time.monotonic() < end:
            for family in self.families:
                command = [EXAMPLES / "random_ops", "--family", family, "--seed", seed, "--runs", RANDOM_RUNS,
                           "--jobs", os.cpu_count()]
                done, said = call(*command)
                self.count("runs of random operations", RANDOM_RUNS)
                if not done:
                    self.fail(" ".join(map(str, command)), said)
            seed += RANDOM_RUNS

    def disk(self, seconds):
        end, seed = time.monotonic() + seconds, self.seed
        while time.monotonic() < end:
            command = [EXAMPLES / "disk_faults", "--seed", seed, "--runs", DISK_RUNS]
            done, said = call(*command)
            self.count("runs with disk faults", DISK_RUNS)
            if not done:
                self.fail(" ".join(map(str, command)), said)
            seed += DISK_RUNS

    def kill(self, seconds):
        end, seed = time.monotonic() + seconds, self.seed
        while time.monotonic() < end:
            command = ["cargo", "test", "-p", "manypath-cli", "--test", "kill"]
            environment = {"MANYPATH_KILL_POINTS": str(KILLS), "MANYPATH_KILL_SEED": str(seed)}
            done, said = call(*command, **environment)
            self.count("kills", KILLS)
            if not done:
                self.fail(" ".join([*(f"{k}={v}" for k, v in environment.items()), *command]), said)
            seed += 1

    def installs(self):
        done, said = call("./check", "installs")
        self.count("kinds of packages installed", len(re.findall(r"^ok    ", said, re.M)))
        if not done:
            self.fail("./check installs", said)


def seed_of(text):
    """A seed, and room above it for those of the whole night."""
    seed = int(text)
    if not 0 <= seed < 2**63:
        raise argparse.ArgumentTypeError(f"{text} is not below 2^63")
    return seed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=8)
    today = datetime.date.today()
    parser.add_argument("--seed", type=seed_of, default=int(today.strftime("%Y%m%d")) * 10_000_000)
    parser.add_argument("--parts", nargs="+", choices=[*SHARES, *ONCE], default=[*SHARES, *ONCE])
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES, help="of random operations")
    parser.add_argument("--no-build", action="store_true", help="everything is built")
    options = parser.parse_args()
    if not options.no_build:
        build()
    commit = call("git", "rev-parse", "--short", "HEAD")[1].strip()
    night, begin = Night(options.seed, options.families), time.monotonic()
    timed = [part for part in options.parts if part in SHARES]
    whole = sum(SHARES[part] for part in timed)
    for part in timed:
        share = SHARES[part] / whole
        print(f"{part}: {share * options.hours * 60:.0f} minutes", flush=True)
        getattr(night, part)(share * options.hours * 3600)
    if "installs" in options.parts:
        night.installs()
    hours = (time.monotonic() - begin) / 3600
    counts = ", ".join(f"{number:,} {what}" for what, number in night.counts.items())
    result = f"{today} {commit} {hours:.2f} h, seed {options.seed}: {counts}; {len(night.failures)} failures"
    print(result)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a") as results:
        results.write(result + "\n")
    return 1 if night.failures else 0


if __name__ == "__main__":
    sys.exit(main())
