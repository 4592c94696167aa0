#!/usr/bin/env python3
"""Tests what `manypath demo` shows: the goodput of both paths, the longest gap, a file that is the same.

    tests/demo/run.py --binary target/release/manypath

The demo asserts nothing itself; this does.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from requirements import add_binary  # noqa: E402
from second_chance import Verdict, judge, settle  # noqa: E402

# Of the paths' sum, and seconds between two deliveries.
SHARE_MIN, GAP_MAX = 0.9, 1.0


def run(binary):
    """Runs the demo and prints what it shows; the verdict."""
    done = subprocess.run([binary, "demo", "--json", "--quiet"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          check=False)
    if done.returncode != 0:
        print(f"demo: FAILED: exit code {done.returncode}: {done.stderr.strip()}", flush=True)
        return Verdict.WRONG
    shown = json.loads(done.stdout)
    both, total, gap, verified = (shown[k] for k in ("both_paths_bps", "paths_sum_bps", "max_delivery_gap_s", "verified"))
    print(f"demo: {both / 1e6:.1f} of {total / 1e6:.1f} Mbit/s, longest gap {gap:.2f} s, verified: {verified}", flush=True)
    return judge([(verified, False), (both >= SHARE_MIN * total, True), (gap <= GAP_MAX, True)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_binary(parser, must=True)
    options = parser.parse_args()
    verdict = run(options.binary)
    late = ["demo"] if verdict is Verdict.LATE else []
    failed = settle(late, lambda _: run(options.binary), lambda _: [sys.executable, __file__, "--binary", options.binary])
    return 1 if failed or verdict is Verdict.WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
