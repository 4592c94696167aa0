#!/usr/bin/env python3
"""Tests of encrypted associations from outside: an independent decoder, and someone who tampers on
all paths. See README.md beside this file."""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from failure import Failed  # noqa: E402
from requirements import add_binary, add_require, skip  # noqa: E402
from second_chance import Verdict, judge, settle  # noqa: E402

try:
    import cryptography  # noqa: F401 (records.py needs it)
except ImportError:
    cryptography = None
else:
    import attacks
    import decoding
    import decrypting

SHOWN = {Verdict.GOOD: "ok    ", Verdict.LATE: "late  ", Verdict.WRONG: "FAILED"}


class Case:
    """One case as it runs: what was checked, what was measured."""

    def __init__(self, name, options):
        self.name, self.options = name, options
        self.checks, self.notes, self.seconds = [], {}, 0

    def check(self, what, value, ok, detail=None, pace=False):
        """Records that `what` was found to be `value`, and whether that is right. With `pace` it is a
        bound in time: a busy machine can be the reason why it is missed."""
        self.checks.append({"what": what, "value": value, "ok": bool(ok), "pace": pace})
        if not ok and detail:
            self.checks[-1]["detail"] = detail

    def note(self, what, value):
        """Records a measurement that has no limit."""
        self.notes[what] = value

    def ok(self):
        """Whether everything checked was right, and something was checked."""
        return self.verdict() is Verdict.GOOD

    def verdict(self):
        """The verdict on what was checked."""
        return judge([(check["ok"], check["pace"]) for check in self.checks])

    def run(self, body):
        """Runs the case in a directory of its own."""
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="manypath-test-", dir=self.options.work_dir) as directory:
            try:
                body(self, Path(directory))
            except Failed as why:
                self.check("the case went on", False, False, str(why))
        self.seconds = round(time.monotonic() - begin, 1)
        return self

    def tell(self):
        """Prints the outcome."""
        if self.options.json:
            print(json.dumps({"case": self.name, "ok": self.ok(), "seconds": self.seconds, "checks": self.checks,
                              "measured": self.notes}), flush=True)
            return
        print(f"{SHOWN[self.verdict()]} {self.name} ({self.seconds} s)", flush=True)
        for check in self.checks:
            if not check["ok"] or self.options.verbose:
                print(f"    {'  ' if check['ok'] else '! '}{check['what']}: {check['value']}")
            for line in check.get("detail", "").splitlines():
                print(f"          {line}")
        for what, value in self.notes.items():
            print(f"      {what}: {value}")
        sys.stdout.flush()


def parse(known):
    parser = argparse.ArgumentParser(description=__doc__, epilog="cases: " + ", ".join(known))
    add_binary(parser)
    parser.add_argument("--only", action="append", metavar="NAME", help="runs this case; repeatable")
    parser.add_argument("--seconds", type=float, default=10, metavar="S", help="how long is tampered with a transfer")
    parser.add_argument("--seed", type=int, default=1, help="of what is tampered with")
    parser.add_argument("--work-dir", help="where files go meanwhile [default: the system's]")
    parser.add_argument("--json", action="store_true", help="prints one JSON object a case")
    parser.add_argument("--verbose", "-v", action="store_true", help="prints the checks that passed, too")
    add_require(parser)
    options = parser.parse_args()
    if unknown := set(options.only or ()) - set(known):
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    return options


def main():
    known = {**decoding.CASES, **decrypting.CASES, **attacks.CASES} if cryptography else {}
    options = parse(known)
    if not cryptography:
        return skip(options, f"the tests of encrypted associations: {sys.executable} has no package cryptography"
                    " (Debian: python3-cryptography)")
    if not Path(options.binary).exists():
        print(f"FAILED: no program {options.binary}; build it with: cargo build --release -p manypath-cli", file=sys.stderr)
        return 1
    def run_alone(name):
        case = Case(name, options).run(known[name])
        case.tell()
        return case.verdict()

    begin = time.monotonic()
    chosen = options.only or list(known)
    verdicts = [(name, run_alone(name)) for name in chosen]
    failed = [name for name, verdict in verdicts if verdict is Verdict.WRONG]
    late = [name for name, verdict in verdicts if verdict is Verdict.LATE]
    failed += second_chance(late, run_alone, options)
    if not options.json:
        print(f"{len(chosen) - len(failed)} of {len(chosen)} cases passed in {time.monotonic() - begin:.0f} s"
              + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def second_chance(late, run_alone, options):
    """Runs cases that were late again; the names of those that failed."""
    words = ["--seconds", str(options.seconds), "--seed", str(options.seed)]
    words += ["--work-dir", options.work_dir] if options.work_dir else []

    def command(name):
        return [sys.executable, __file__, "--binary", str(options.binary), "--require", *words, "--only", name]
    say = (lambda text: print(text, file=sys.stderr)) if options.json else print
    return settle(late, run_alone, command, say)


if __name__ == "__main__":
    sys.exit(main())
