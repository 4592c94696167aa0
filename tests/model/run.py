#!/usr/bin/env python3
"""Checks the model of handshake, restart and shutdown, and compares the engine's transitions with it.

    tests/model/run.py                                        # the model and its mutations
    tests/model/run.py --seen FILE                            # also the transitions of random runs
    tests/model/run.py --only shutdown restart_keeps_tag      # these scenarios and mutations
    tests/model/run.py --update                               # writes transitions.csv anew
    tests/model/run.py --story open_association_changes_peer  # the run that violates a property, event by event

FILE is what the example random_ops writes with --transitions.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import conformance
from cases import LIVELOCK, MUTATIONS, SCENARIOS
from failure import Failed, expect
from requirements import add_require, skip

HERE = Path(__file__).resolve().parent
MODEL = HERE / "association.pml"
# Of one scenario: the largest takes 20 s on a busy machine, and 0.2 GB.
MOST_SECONDS = 300
MOST_MEGABYTES = 1500
DEEPEST = 200_000


class Verdict:
    """The output of a verification."""

    def __init__(self, text):
        states = re.search(r"(\d+) states, stored", text)
        expect(states, f"spin has found no states:\n{text[-2000:]}")
        self.states = int(states[1])
        self.transitions = set(re.findall(r"^transition,(.*)$", text, re.M))
        failure = re.search(r"^pan:\d+: (.*?)(?: \(at depth \d+\))?$", text, re.M)
        self.failure = failure[1] if failure else None
        expect(self.failure or "errors: 0" in text, f"spin has not come to an end:\n{text[-2000:]}")

    def violates(self, name):
        """True if this property, or LIVELOCK, does not hold."""
        return self.failure is not None and re.search(rf"\b{re.escape(name)}\b", self.failure)


class Verifiers:
    """The verifiers that spin makes of the model: one that looks at states, one that looks for cycles."""

    def __init__(self, folder, more=()):
        self.folder = Path(folder)
        shutil.copy(MODEL, self.folder)
        self.call("spin", *more, "-a", MODEL.name)
        self.is_there = {}

    def call(self, *command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        expect(done.returncode == 0 and "rror" not in done.stdout, f"{' '.join(command)}:\n{done.stdout}{done.stderr}")

    def compile(self, seeks_cycles, flags=()):
        flags = [f"-DMEMLIM={MOST_MEGABYTES}", "-DCOLLAPSE", "-DNP" if seeks_cycles else "-DSAFETY", *flags]
        self.call("cc", "-O1", "-w", *flags, "-o", self.name(seeks_cycles), "pan.c")

    @staticmethod
    def name(seeks_cycles):
        return "pan-cycles" if seeks_cycles else "pan-states"

    def run(self, bounds, seeks_cycles, folder, *options, most_seconds=MOST_SECONDS):
        """Runs one in a folder of its own; its output."""
        program = self.folder / self.name(seeks_cycles)
        command = [program, "-n", *options, *(["-l"] if seeks_cycles else [])]
        variables = {**os.environ, **{name: str(value) for name, value in bounds.items()}}
        try:
            done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False,
                                  timeout=most_seconds)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"spin takes more than {most_seconds} s") from late
        return done.stdout + done.stderr


def number_of(mutation):
    """The number of a mutation in the model."""
    return int(re.search(rf"^#define {mutation} +(\d+)$", MODEL.read_text(), re.M)[1])


def bounds_of(name):
    """The bounds of a scenario or mutation, and True if cycles are sought."""
    if name in SCENARIOS:
        return SCENARIOS[name].bounds, SCENARIOS[name].seeks_cycles
    failing = MUTATIONS[name]
    base = SCENARIOS[failing.scenario]
    mutation = {"ONLY": failing.violated, "MUTATION": number_of(name)}
    return {**base.bounds, **mutation}, base.seeks_cycles


def judge(name, verifiers):
    """Runs one of them; a line of the report, the failure or None, and the transitions reached."""
    began = time.monotonic()
    bounds, seeks_cycles = bounds_of(name)
    try:
        with tempfile.TemporaryDirectory() as folder:
            verdict = Verdict(verifiers.run(bounds, seeks_cycles, folder, f"-m{DEEPEST}"))
    except Failed as failed:
        return f"{name}: {failed}", True, set()
    seconds = time.monotonic() - began
    failing = MUTATIONS.get(name)
    if failing is None:
        line = f"{name}: {verdict.failure or 'holds'}; {verdict.states:,} states, {seconds:.1f} s"
        return line, verdict.failure is not None, verdict.transitions
    is_right = verdict.violates(failing.violated)
    found = failing.violated if is_right else f"{verdict.failure or 'nothing'}, and not {failing.violated}"
    return f"{name}: violates {found}; {seconds:.1f} s", not is_right, set()


def tell_story(name):
    """Prints the events of a run that violates a property."""
    bounds, seeks_cycles = bounds_of(name)
    with tempfile.TemporaryDirectory() as folder:
        verifiers = Verifiers(folder, ["-DSTORY"])
        verifiers.compile(seeks_cycles, ["-DREACH"])
        # The shortest run; where that takes too long, any.
        try:
            verifiers.run(bounds, seeks_cycles, folder, "-i", "-m2000", most_seconds=60)
        except Failed:
            verifiers.run(bounds, seeks_cycles, folder, f"-m{DEEPEST}")
        told = verifiers.run(bounds, seeks_cycles, folder, "-r")
    print("\n".join(line for line in told.splitlines() if re.match(r"[AZ]: |pan:", line)))


def check_model(names, table, is_update):
    """Runs these scenarios and mutations; True if all is as it must be."""
    failures, reached = 0, set()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        verifiers = Verifiers(folder)
        for seeks_cycles in {bounds_of(name)[1] for name in names}:
            verifiers.compile(seeks_cycles)
        for line, has_failed, transitions in pool.map(lambda name: judge(name, verifiers), names):
            print(("FAILED: " if has_failed else "") + line, flush=True)
            failures += has_failed
            reached |= transitions
    print(f"{len(names)} verifications in {time.monotonic() - began:.0f} s")
    if set(SCENARIOS) <= set(names) and not failures:
        text = conformance.HEADER + "".join(f"{line}\n" for line in sorted(reached))
        if is_update:
            table.write_text(text)
        elif table.read_text() != text:
            print(f"FAILED: {table.name} does not have the transitions of the model; --update writes it anew")
            failures += 1
        print(f"{len(reached)} transitions of the model")
    return not failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_require(parser)
    known = [*SCENARIOS, *MUTATIONS]
    parser.add_argument("--only", nargs="+", choices=known, metavar="NAME", help="these scenarios and mutations")
    parser.add_argument("--seen", type=Path, action="append", default=[], help="transitions of random runs")
    parser.add_argument("--seen-only", action="store_true", help="compares transitions, and does not check the model")
    parser.add_argument("--update", action="store_true", help="writes transitions.csv anew")
    parser.add_argument("--story", choices=known, metavar="NAME", help="the run that violates a property")
    options = parser.parse_args()
    table = HERE / "transitions.csv"
    needs_spin = not options.seen_only
    missing = [program for program in ("spin", "cc") if shutil.which(program) is None]
    if needs_spin and missing:
        return skip(options, f"the model needs {' and '.join(missing)}")
    if options.story:
        tell_story(options.story)
        return 0
    is_right = options.seen_only or check_model(options.only or known, table, options.update)
    if options.seen:
        is_right &= conformance.check(table, options.seen)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
