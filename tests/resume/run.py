#!/usr/bin/env python3
"""Tests that interrupted transfers go on: sender, receiver or both are killed with SIGKILL, and started again.

    tests/resume/run.py --binary target/release/manypath [--full] [--seed N] [CASE...]

Over loopback. A long file and a tree of files are sent; each time a random part has arrived, one side is killed. In the
end everything must be equal, and of what had arrived at most a block (1 MiB) for each kill may travel twice. --full is
2 GB, 10,000 files and ten kills; otherwise it is 300 MB, 400 files and four.
"""

import argparse
import hashlib
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from failure import Failed, expect  # noqa: E402
from process import Process  # noqa: E402
from requirements import add_binary  # noqa: E402

BLOCK = 1 << 20
INTERRUPTED = 3
PREFIX = ".manypath-"


class Pair:
    """A sender and a receiver that are killed and started again with the same commands."""

    def __init__(self, binary, work, source):
        self.binary, self.source, self.target = binary, source, work / "target"
        self.target.mkdir()
        self.port, self.receiver, self.sender, self.ticket = "0", None, None, None
        self.identity = work / "identity"

    def start_receiver(self):
        self.receiver = Process(
            [self.binary, "recv", "--json", "--progress", "--listen", "127.0.0.1", "--port", self.port, "--identity",
             str(self.identity), "--token", "of one test only", "--dir", str(self.target)])
        listening = self.receiver.event("listening", 20)
        expect(self.ticket in (None, listening["ticket"]), "another ticket after a new start")
        self.ticket, self.port = listening["ticket"], str(listening["port"])

    def start_sender(self):
        # An encrypted sender does not believe a new receiver that the old one is gone.
        self.sender = Process([self.binary, "send", "--json", "--set", "association_timeout=3s", str(self.source),
                               self.ticket])

    def arrived(self):
        """Bytes in the receiver's directory."""
        return sum(path.stat().st_size for path in self.target.rglob("*") if path.is_file())

    def run_until(self, wanted, victims):
        """Lets the transfer go on until so many bytes are there, then kills; False if it ended before."""
        since, begin = len(self.receiver.records), time.monotonic()
        self.start_sender()
        # The receiver also tells of the transfer before, as long as it waits for its sender.
        while not any(record.get("bytes", 0) >= wanted and record["elapsed_s"] <= time.monotonic() - begin
                      for record in self.receiver.records[since:]):
            if self.sender.poll() is not None:
                return False
            time.sleep(0.002)
        for victim in victims:
            getattr(self, victim).kill()
        if "receiver" in victims:
            self.start_receiver()
            if victims == ("receiver",):
                code = self.sender.wait()
                if code == 0:
                    return False
                expect(code == INTERRUPTED, f"the sender's exit code is {code}: {self.sender.said()}")
        return True

    def close(self):
        for process in (self.sender, self.receiver):
            if process:
                process.kill()


def contents(top):
    """The digests of all files under a directory, or of one file, by name."""
    files = [top] if top.is_file() else [path for path in top.rglob("*") if path.is_file()]
    digests = {}
    for path in files:
        with open(path, "rb") as file:
            digests[str(path.relative_to(top.parent))] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def make_file(path, size, seed):
    rng = random.Random(seed)
    block = rng.randbytes(1 << 20)
    with open(path, "wb") as file:
        for number in range(-(-size // len(block))):
            piece = number.to_bytes(8, "big") + block[8:]
            file.write(piece[:min(len(piece), size - number * len(block))])


def make_tree(top, files, rng):
    for number in range(files):
        path = top / f"{number % 97}" / f"{number % 7}" / f"file {number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(rng.choice([0, 10, 3_000, 400_000])))
    make_file(top / "long", 40_000_000, 1)


def interrupt(pair, kills, rng, size):
    """Kills at so many random points, then lets the transfer end. What happened."""
    victims = [("sender",), ("receiver",), ("sender", "receiver")]
    points = sorted(rng.uniform(0.02, 0.9) * size for _ in range(kills))
    there, done = 0, 0
    pair.start_receiver()
    for number, point in enumerate(points):
        if not pair.run_until(max(point, there + 1), victims[number % 3]):
            # It ended while the kill was on its way.
            there = size
            break
        done += 1
        before, there = there, pair.arrived()
        expect(there >= before - BLOCK, f"of {before} bytes {there} were left")
    expect(done >= kills / 2, f"the transfer ended after {done} of {kills} kills: {pair.sender.said()}")
    pair.start_sender()
    code = pair.sender.wait(300)
    expect(code == 0, f"the sender's exit code is {code}: {pair.sender.said()}")
    result = pair.sender.records[-1]
    twice = there - result["resumed_bytes"]
    expect(twice <= BLOCK, f"{there} bytes were there, {result['resumed_bytes']} of them were of use")
    expect(result["resumed_bytes"] + result["bytes"] == size, f"{result['bytes']} bytes travelled in the last run")
    return f"{done} kills in {size / 1e6:.0f} MB; {max(twice, 0)} bytes travelled twice after the last"


def nothing_left(pair):
    left = [path.name for path in pair.target.rglob(PREFIX + "*")]
    expect(not left, f"left behind: {left}")


def long_file(options, work, rng):
    """A long file; both sides are killed in turn, and at once."""
    size = 2_000_000_000 if options.full else 300_000_000
    source = work / "long.bin"
    make_file(source, size, options.seed)
    pair = Pair(options.binary, work, source)
    try:
        told = interrupt(pair, options.kills, rng, size)
        expect(contents(source) == contents(pair.target / source.name), "the file differs")
        nothing_left(pair)
    finally:
        pair.close()
    return told


def tree(options, work, rng):
    """A tree of files."""
    source = work / "tree"
    make_tree(source, 10_000 if options.full else 400, rng)
    size = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
    pair = Pair(options.binary, work, source)
    try:
        told = interrupt(pair, options.kills, rng, size)
        expect(contents(source) == contents(pair.target / source.name), "the trees differ")
        nothing_left(pair)
        pair.start_sender()
        expect(pair.sender.wait() == 0, f"sent once more: {pair.sender.said()}")
        expect(pair.sender.records[-1]["bytes"] == 0, "what is there was sent once more")
    finally:
        pair.close()
    return told


def changed(options, work, rng):
    """The source changes in between: before where the transfer stopped, and behind it."""
    size = 100_000_000
    source = work / "changed.bin"
    make_file(source, size, options.seed)
    pair = Pair(options.binary, work, source)
    try:
        pair.start_receiver()
        expect(pair.run_until(size // 2, ("sender",)), "the transfer ended too early")
        with open(source, "r+b") as file:
            file.seek(size // 5)
            file.write(b"changed")
            file.seek(size - 100)
            file.write(b"changed, too")
        pair.start_sender()
        code = pair.sender.wait()
        expect(code == 0, f"the sender's exit code is {code}: {pair.sender.said()}")
        resumed = pair.sender.records[-1]["resumed_bytes"]
        expect(0 < resumed <= size // 5, f"{resumed} bytes were taken for the same")
        expect(contents(source) == contents(pair.target / source.name), "the file differs")
        nothing_left(pair)
    finally:
        pair.close()
    return f"{resumed} bytes before the change were kept"


def refused(options, work, _rng):
    """Without resume nothing is kept; and another file of the same name and size is not replaced."""
    source = work / "other.bin"
    make_file(source, 3_000_000, options.seed)
    pair = Pair(options.binary, work, source)
    (pair.target / source.name).write_bytes(os.urandom(3_000_000))
    before = contents(pair.target)
    try:
        pair.start_receiver()
        pair.start_sender()
        code = pair.sender.wait()
        expect(code == 1 and "exists there" in pair.sender.said(), f"exit code {code}: {pair.sender.said()}")
        expect(contents(pair.target) == before, "it was replaced")
    finally:
        pair.close()
    return "not replaced"


CASES = {"long-file": long_file, "tree": tree, "changed": changed, "refused": refused}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser)
    parser.add_argument("--full", action="store_true", help="2 GB, 10,000 files, ten kills")
    parser.add_argument("--seed", type=int, default=1, help="of the points at which is killed [default: 1]")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all by default")
    options = parser.parse_args()
    unknown = set(options.cases) - set(CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    options.kills = 10 if options.full else 4
    failed = False
    for name in options.cases or CASES:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="manypath-resume-") as work:
            try:
                told, outcome = CASES[name](options, Path(work), random.Random(f"{options.seed} {name}")), "ok    "
            except Failed as why:
                told, outcome, failed = str(why), "FAILED", True
        print(f"{outcome} {name} ({time.monotonic() - begin:.1f} s): {told}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
