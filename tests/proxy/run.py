#!/usr/bin/env python3
"""Tests of `manypath proxy` over emulated links: throughput, outages, latency beside a download, many
connections, restarts, and the programs that people use.

    tests/proxy/run.py --binary target/release/manypath [--require] [--full] [CASE...]

Each case runs in network namespaces of `manypath emulate`: the near side on host a, the far side and
its servers on host z. Needs Linux and the right to make namespaces; skipped loudly without it, unless
--require is given. --full also runs the cases that take long.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from requirements import add_binary, add_require  # noqa: E402
from second_chance import Verdict, judge, settle  # noqa: E402

PEER = Path(__file__).resolve().parent / "peer.py"

LINKS = """
transfer.size = "1 MB"
[[path]]
rate = "50 Mbit/s"
delay = "20 ms"
queue = "160 packets"
[[path]]
rate = "50 Mbit/s"
delay = "20 ms"
queue = "160 packets"
{more}
"""

# The second path fails at this time, and stays so for 4 s.
DOWN = """
down = [ {{ at = "{at} s", for = "4 s" }} ]
"""

CASES = {
    # name: seconds it may take
    "throughput": 40,
    "outage": 40,
    "latency": 60,
    "restart": 40,
    "udp": 20,
    "remote": 30,
    "tproxy": 30,
    "many": 60,
    "ssh": 40,
    "browser": 60,
}


SHOWN = {Verdict.GOOD: "ok", Verdict.LATE: "LATE", Verdict.WRONG: "FAILED"}


def run_case(options, name):
    """Runs a case in its namespaces: its checks, or the reason why it could not run."""
    with tempfile.TemporaryDirectory(prefix="manypath-proxy-") as directory:
        scenario = Path(directory) / "links.toml"
        more = DOWN.format(at=OUTAGE_AT) if name == "outage" else ""
        scenario.write_text(LINKS.format(more=more))
        secret = Path(directory) / "secret"
        secret.write_text("a-secret-of-the-tests\n")
        secret.chmod(0o600)
        environment = dict(os.environ, MANYPATH=options.binary, DIRECTORY=directory,
                           XDG_RUNTIME_DIR=directory)
        far = f"exec {sys.executable} {PEER} far {name}"
        near = [sys.executable, str(PEER), "near", name]
        command = [options.binary, "emulate", str(scenario), "--quiet", "--at", "z", far, "--", *near]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=CASES[name] * (4 if options.full else 1) + 20)
        except subprocess.TimeoutExpired as late:
            return None, f"took more than {late.timeout} s"
        try:
            return json.loads(done.stdout.strip().splitlines()[-1]), done.stderr.strip()
        except (ValueError, IndexError):
            return None, f"exit code {done.returncode}: {done.stderr.strip()[-2000:]}"


OUTAGE_AT = 5


def report(options, name):
    """Runs a case and prints its outcome; its verdict, or None if it was skipped."""
    begin = time.monotonic()
    checks, error = run_case(options, name)
    took = time.monotonic() - begin
    if checks is None:
        print(f"{name}: FAILED ({took:.0f} s): {error}", flush=True)
        return Verdict.WRONG
    if "skipped" in checks:
        print(f"{name}: SKIPPED: {checks['skipped']}", flush=True)
        return Verdict.WRONG if options.require else None
    verdict = judge([(is_right, pace) for *_, is_right, pace in checks["checks"]])
    print(f"{name}: {SHOWN[verdict]} ({took:.0f} s)")
    for what, value, is_right, _ in checks["checks"]:
        print(f"    {'' if is_right else 'FAILED '}{what}: {value}")
    if verdict is not Verdict.GOOD:
        print(error)
    sys.stdout.flush()
    return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_binary(parser, must=True)
    add_require(parser)
    parser.add_argument("--full", action="store_true", help="longer measurements")
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], metavar="CASE")
    options = parser.parse_args()
    os.environ["FULL"] = "1" if options.full else ""
    failed, late = [], []
    for name in options.cases or CASES:
        verdict = report(options, name)
        {Verdict.WRONG: failed, Verdict.LATE: late}.get(verdict, []).append(name)
    words = [*["--require"] * options.require, *["--full"] * options.full]
    command = [sys.executable, __file__, "--binary", options.binary, *words]
    failed += settle(late, lambda name: report(options, name), lambda name: [*command, name])
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
