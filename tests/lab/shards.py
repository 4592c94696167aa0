#!/usr/bin/env python3
"""Makes experiments in shards, as machines of a cluster do, and compares with one `lab run`.

Two experiments of each paper: the shards run in a random order, two at a time, one of them twice,
and one is killed in the middle and repeated. All files must be the same, byte for byte.
"""

import argparse
import filecmp
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

EXPERIMENTS = (
    "pf-fig2 pf-tab1 rtx-fig3 rtx-timeliness cmt-fig1 cmt-cuc mtcp-tab3 mtcp-fig1 msacmt-fig2 msacmt-tab3"
).split()
SHARDS = 7


def differences(one, other):
    """Paths that only one of the folders has, or with other contents."""
    names = {path.relative_to(folder) for folder in (one, other) for path in folder.rglob("*") if path.is_file()}
    return [str(name) for name in sorted(names)
            if not ((one / name).is_file() and (other / name).is_file()
                    and filecmp.cmp(one / name, other / name, shallow=False))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the manypath program")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the shards [default: 1]")
    options = parser.parse_args()
    extent = [*EXPERIMENTS, "--quick", "--seeds", "2", "--quiet"]

    def lab(*arguments):
        subprocess.run([options.binary, "lab", *arguments], check=True, stdout=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        lab("run", *extent, "--jobs", "1", "--out", str(folder / "run"))

        def command(shard, name):
            return ["exec", *extent, "--jobs", "1", "--shard", f"{shard}/{SHARDS}", "--out", str(folder / name)]

        shards = list(range(1, SHARDS + 1))
        random.Random(options.seed).shuffle(shards)
        killed = subprocess.Popen([options.binary, "lab", *command(shards[0], f"part-{shards[0]}")])
        time.sleep(0.3)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        jobs = [(shard, f"part-{shard}") for shard in shards] + [(shards[3], "part-again")]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: lab(*command(*job)), jobs))
        parts = sorted(str(part) for part in folder.glob("part-*"))
        random.Random(options.seed).shuffle(parts)
        lab("collect", *parts, "--quiet", "--out", str(folder / "collected"))
        differ = differences(folder / "run", folder / "collected")
        print(f"shards: {len(EXPERIMENTS)} experiments in {len(parts)} parts, {len(differ)} files differ")
        for name in differ:
            print(f"  {name}", file=sys.stderr)
        sys.exit(bool(differ))


main()
