#!/usr/bin/env python3
"""End-to-end tests of the manypath command between network namespaces. See README.md beside this file."""

import argparse
import concurrent.futures
import json
import signal
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import aliases  # noqa: E402
import cases  # noqa: E402
import code_cases  # noqa: E402
import failures  # noqa: E402
import direct_cases  # noqa: E402
import hostile  # noqa: E402
import marks  # noqa: E402
import nat_cases  # noqa: E402
import only_cases  # noqa: E402
import overlay_paths  # noqa: E402
import raw_ip  # noqa: E402
import relays  # noqa: E402
import roaming  # noqa: E402
import secrecy  # noqa: E402
import sizes  # noqa: E402
import slow  # noqa: E402
import strangers  # noqa: E402
import uplinks  # noqa: E402
from failure import Failed, Unavailable  # noqa: E402
from namespaces import Lab, Late, check_machine, remove_leftovers  # noqa: E402
from requirements import add_binary, add_require, skip  # noqa: E402
from second_chance import Verdict, judge, settle  # noqa: E402

# Their senders are slow, or wait for what happens next.
WAITING = {"hoarding", "abort-loop", "verdict", *hostile.CASES, *roaming.CASES, *sizes.CASES, *raw_ip.CASES, *failures.CASES, *secrecy.CASES, *slow.CASES}
TOGETHER = 5  # of these at a time
SHOWN = {Verdict.GOOD: "ok    ", Verdict.LATE: "LATE  ", Verdict.WRONG: "FAILED"}
LATE_MAX = 2  # times that a case is run again because the machine was late


class Case:
    """One case as it runs: what was checked, what was measured."""

    def __init__(self, name, options):
        self.name, self.options = name, options
        self.checks, self.notes, self.values = [], {}, {}
        self.lab, self.seconds = None, 0

    def check(self, what, value, ok, detail=None, pace=False):
        """Records that `what` was found to be `value`, and whether that is right. With `pace` it is a
        bound in time: a busy machine can be the reason why it is missed."""
        self.checks.append({"what": what, "value": value, "ok": bool(ok), "pace": pace})
        if not ok and detail:
            self.checks[-1]["detail"] = detail() if callable(detail) else detail

    def note(self, what, value):
        """Records a measurement that has no limit."""
        self.notes[what] = value

    def measure(self, what, value, unit):
        """Records a number, of which repeated runs show the distribution."""
        self.values[what] = (value, unit)
        self.note(what, f"{value:.2f} {unit}")

    def ok(self):
        """Whether everything checked was right, and something was checked."""
        return self.verdict() is Verdict.GOOD

    def verdict(self):
        """The verdict on what was checked."""
        return judge([(check["ok"], check["pace"]) for check in self.checks])

    def run(self, body):
        """Runs the case in a lab of its own. If the machine was late, it runs again."""
        begin = time.monotonic()
        for again in range(LATE_MAX, -1, -1):
            self.lab = Lab(self.name, self.options.work_dir)
            with self.lab:
                try:
                    body(self, self.lab)
                    break
                except Failed as why:
                    self.check("the case went on", False, False, str(why))
                    break
                except Unavailable as why:
                    self.note("SKIPPED", str(why))
                    self.check("this machine can run it", False, not self.options.require)
                    break
                except Late as why:
                    self.checks.clear()
                    self.note("late", str(why))
                    if not again:
                        self.check("the machine was in time", False, False, str(why), pace=True)
        self.seconds = round(time.monotonic() - begin, 1)
        return self

    def tell(self):
        """Prints the outcome."""
        if self.options.json:
            print(json.dumps({"case": self.name, "ok": self.ok(), "seconds": self.seconds, "checks": self.checks,
                              "measured": self.notes,
                              "values": {what: value for what, (value, _) in self.values.items()}}), flush=True)
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


def parse(cases_known):
    parser = argparse.ArgumentParser(description=__doc__, epilog="cases: " + ", ".join(cases_known))
    add_binary(parser)
    parser.add_argument("--only", action="append", metavar="NAME", help="runs this case; repeatable")
    parser.add_argument("--repeat", type=int, default=1, metavar="N",
                        help="runs each case N times and shows the distribution of what it measures")
    parser.add_argument("--full", action="store_true", help="a file of 1 GB, and the failures at their default times")
    parser.add_argument("--size", type=int, metavar="MB", help="size of the large file instead")
    parser.add_argument("--outage", type=float, metavar="SECONDS", help="how long the link of that case is down")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="passed to sender and receiver")
    parser.add_argument("--work-dir", help="where files go meanwhile [default: the system's]")
    parser.add_argument("--json", action="store_true", help="prints one JSON object a case")
    parser.add_argument("--verbose", "-v", action="store_true", help="prints the checks that passed, too")
    add_require(parser)
    options = parser.parse_args()
    unknown = set(options.only or ()) - set(cases_known)
    if options.repeat < 1:
        parser.error("--repeat: at least 1")
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are: {', '.join(cases_known)}")
    return options


def main():
    named = {**overlay_paths.MEASURED, **strangers.MEASURED}
    # The slowest of those that run together begin first.
    known = {**slow.CASES, **cases.CASES, **relays.CASES, **nat_cases.CASES, **direct_cases.CASES, **hostile.CASES,
             **only_cases.CASES, **code_cases.CASES, **roaming.CASES, **sizes.CASES, **marks.CASES, **raw_ip.CASES, **strangers.CASES, **uplinks.CASES,
             **aliases.CASES, **named}
    known |= failures.CASES | secrecy.CASES
    options = parse(known)
    try:
        check_machine()
    except Unavailable as why:
        return skip(options, f"the tests between network namespaces: {why}")
    if not Path(options.binary).exists():
        print(f"FAILED: no program {options.binary}; build it with: cargo build --release -p manypath-cli", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    remove_leftovers()
    begin = time.monotonic()
    wanted = options.only or [name for name in known if name not in named]
    chosen = [(name, body) for name, body in known.items() if name in wanted for _ in range(options.repeat)]
    done = run_all(chosen, options)
    failed = [case.name for case in done if case.verdict() is Verdict.WRONG]
    late = [case.name for case in done if case.verdict() is Verdict.LATE]
    # Repeated runs are to show the distribution, late ones as well.
    failed += late if options.repeat > 1 else second_chance(late, known, options)
    if not options.json:
        for line in distributions(done) if options.repeat > 1 else []:
            print(line)
        print(f"{len(done) - len(failed)} of {len(done)} cases passed in {time.monotonic() - begin:.0f} s"
              + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def second_chance(late, known, options):
    """Runs cases that were late again, alone; the names of those that failed."""
    def run_alone(name):
        case = Case(name, options).run(known[name])
        case.tell()
        return case.verdict()
    words = [word for name in ("size", "outage", "work_dir") if (value := getattr(options, name)) is not None
             for word in (f"--{name.replace('_', '-')}", str(value))]
    words += ["--full"] * options.full + [word for setting in options.set for word in ("--set", setting)]

    def command(name):
        return [sys.executable, __file__, "--binary", options.binary, "--require", *words, "--only", name]
    say = (lambda text: print(text, file=sys.stderr)) if options.json else print
    return settle(late, run_alone, command, say)


def distributions(done):
    """Lines that show what repeated cases measured: every value in order, and the median."""
    for name in dict.fromkeys(case.name for case in done):
        runs = [case for case in done if case.name == name]
        yield f"{name}: {sum(case.ok() for case in runs)} of {len(runs)} runs passed"
        for what in dict.fromkeys(what for case in runs for what in case.values):
            values = sorted(case.values[what][0] for case in runs if what in case.values)
            unit = next(case.values[what][1] for case in runs if what in case.values)
            shown = " ".join(f"{value:.2f}" for value in values)
            yield f"    {what}, {len(values)} of {len(runs)}: {shown} {unit}; median {statistics.median(values):.2f} {unit}"


def run_all(chosen, options):
    """Runs the cases that measure one by one, then those that mostly wait together."""
    done, together = [], []
    for name, body in chosen:
        if name in WAITING:
            together.append((Case(name, options), body))
            continue
        done.append(Case(name, options).run(body))
        done[-1].tell()
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        try:
            for case in pool.map(lambda one: one[0].run(one[1]), together):
                case.tell()
                done.append(case)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for case, _ in together:
                if case.lab:
                    case.lab.close()
            raise
    return done


if __name__ == "__main__":
    sys.exit(main())
