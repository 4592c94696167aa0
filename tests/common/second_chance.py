#!/usr/bin/env python3
"""A second chance for cases that were only late.

Other work on the machine can make a case late. A case that missed nothing but bounds in time therefore
runs again, alone, and says so. It fails if it is late again. A case with a wrong result fails at once.

A full ./check has other steps beside, and no case is alone there. It names a file in MANYPATH_LATE:
tests add the commands of their late cases to it, and ./check runs these after all steps, with

    tests/common/second_chance.py FILE

Others can keep the machine from running then, too; host_pace.py measures that without the case. A try
beside which they did says nothing: the case has three tries, and is "not measured" if all were such.
"""

import enum
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import host_pace

# The file for commands of late cases. While those run, the other one is set: it is for names of cases that
# are late again.
FILE, AGAIN = "MANYPATH_LATE", "MANYPATH_LATE_AGAIN"
# Of a late case, after all steps, while the machine is kept from running; seconds between two of them.
TRIES, BETWEEN = 3, 20


class Verdict(enum.Enum):
    """The outcome of one run of a case."""

    GOOD = "good"
    LATE = "late"
    WRONG = "wrong"


def judge(checks):
    """The verdict on the checks of a run: pairs of "it was right" and "it is a bound in time"."""
    missed = [is_time for is_right, is_time in checks if not is_right]
    if not checks or not all(missed):
        return Verdict.WRONG
    return Verdict.LATE if missed else Verdict.GOOD


def settle(late, run_alone, command, say=print):
    """Gives the cases `late` their second chance; the names of those that failed.

    `run_alone(name)` runs a case while no other one does, prints its outcome and returns its verdict.
    `command(name)` is the command that runs the case alone.
    """
    if file := os.environ.get(AGAIN):
        for name in late:
            say(f"        {name} was late again")
            with open(file, "a", encoding="utf-8") as names:
                names.write(f"{name}\n")
        return list(late)
    if file := os.environ.get(FILE):
        for name in late:
            say(f"        {name} was late, beside other work; it runs again, alone, after all steps")
            with open(file, "a", encoding="utf-8") as commands:
                commands.write(json.dumps({"name": name, "command": command(name)}) + "\n")
        return []
    failed = []
    for name in late:
        say(f"        {name} was late; again, alone:")
        if run_alone(name) is not Verdict.GOOD:
            failed.append(name)
    return failed


class Host:
    """The machine that the cases run on."""

    def measure(self, run):
        """Calls `run`; its result, and why the machine was no measure meanwhile, or None."""
        before, watch = host_pace.lost(), host_pace.Watch()
        result = run()
        stolen = watch.stolen()
        for share, what in ((stolen, "was stolen from the machine meanwhile"), (before, "was kept from a busy loop before"),
                            (host_pace.lost(), "was kept from a busy loop afterwards")):
            if share > host_pace.MOST_LOST:
                return result, f"{share:.1%} of the time {what}"
        return result, None

    def wait(self):
        time.sleep(BETWEEN)


def run_again(command):
    """Runs the command of a case; its verdict."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as again:
        environment = {name: value for name, value in os.environ.items() if name != FILE} | {AGAIN: again.name}
        if subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode == 0:
            return Verdict.GOOD
        return Verdict.LATE if again.read() else Verdict.WRONG


def last_chance(name, command, host):
    """Runs a late case until it is good, wrong, or late on a machine that kept time; else it is not measured: None."""
    for number in range(TRIES):
        if number:
            host.wait()
        print(f"{name} was late, beside other work; again, alone:", flush=True)
        verdict, excuse = host.measure(lambda: run_again(command))
        if verdict is not Verdict.LATE or not excuse:
            return verdict
        print(f"        {excuse}: this says nothing about {name}", flush=True)
    return None


def run_file(path, host):
    """Runs the commands of a file one after the other; the names of those that failed, and were not measured."""
    failed, unmeasured = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        late = json.loads(line)
        verdict = last_chance(late["name"], late["command"], host)
        if verdict is None:
            unmeasured.append(late["name"])
        elif verdict is not Verdict.GOOD:
            failed.append(late["name"])
    return failed, unmeasured


def main():
    path = Path(sys.argv[1])
    failed, unmeasured = run_file(path, Host()) if path.exists() else ([], [])
    if unmeasured:
        print(f"NOT MEASURED, as others used the machine: {', '.join(unmeasured)}")
    if failed:
        print(f"FAILED: late again, alone, or wrong: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
