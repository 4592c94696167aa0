#!/usr/bin/env python3
"""A second chance for cases that were only late.

Other work on the machine can make a case late. A case that missed nothing but bounds in time therefore
runs again, alone, and says so. It fails if it is late again. A case with a wrong result fails at once.

A full ./check has other steps beside, and no case is alone there. It names a file in MANYPATH_LATE:
tests add the commands of their late cases to it, and ./check runs these after all steps, with

    tests/common/second_chance.py FILE
"""

import enum
import json
import os
import subprocess
import sys
from pathlib import Path

# The file for commands of late cases. While those run, the other one is set: there is no third chance.
FILE, IS_LAST = "MANYPATH_LATE", "MANYPATH_LATE_IS_LAST"


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
    if os.environ.get(IS_LAST):
        for name in late:
            say(f"        {name} was late twice")
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


def run_file(path):
    """Runs the commands of a file one after the other; the names of those that failed."""
    environment = {name: value for name, value in os.environ.items() if name != FILE} | {IS_LAST: "1"}
    failed = []
    for line in path.read_text(encoding="utf-8").splitlines():
        late = json.loads(line)
        print(f"{late['name']} was late, beside other work; again, alone:", flush=True)
        if subprocess.run(late["command"], env=environment, stdin=subprocess.DEVNULL, check=False).returncode != 0:
            failed.append(late["name"])
    return failed


def main():
    path = Path(sys.argv[1])
    failed = run_file(path) if path.exists() else []
    if failed:
        print(f"FAILED: late again, alone, or wrong: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
