"""Files to send, `manypath send` and `manypath recv` in namespaces, and what can be said of a transfer."""

import hashlib
import json
import os
import time
from pathlib import Path

from failure import Failed

HERE = Path(__file__).resolve().parent
MEMORY_MAX = 64 << 20
# Of an IPv4 packet of 1500 bytes in an Ethernet frame of 1514, which tbf counts, 1416 are content: 28 less than
# with `--insecure`.
CONTENT_SHARE = 1416 / 1514


def make_file(path, size):
    """A file of `size` bytes whose blocks all differ; its SHA-256."""
    digest, block, left, number = hashlib.sha256(), os.urandom(1 << 20), size, 0
    with open(path, "wb") as file:
        while left:
            piece = (number.to_bytes(8, "big") + block[8:])[:left]
            file.write(piece)
            digest.update(piece)
            left -= len(piece)
            number += 1
    return digest.hexdigest()


def sha256_of(path):
    """The digest of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Transfer:
    """A receiver in one host, and once started a sender in another."""

    def __init__(self, lab, binary, source, receiver, options=(), new_dir=False):
        self.lab, self.binary, self.source = lab, binary, Path(source)
        self.dir = lab.dir / "received"
        if not new_dir:  # else the receiver makes it
            self.dir.mkdir(exist_ok=True)
        command = [binary, "recv", "--once", "--json", "--progress", "--dir", str(self.dir), *options]
        self.recv = lab.spawn(receiver, command)
        line = self.recv.wait_line('"listening"', 20)
        self.listening = json.loads(line)
        self.send = None

    def start(self, sender, *options, dest=None, prefix=()):
        """Starts the sender, by the command `prefix` if that is given."""
        command = [*prefix, self.binary, "send", "--json", *options, str(self.source), dest or self.listening["ticket"]]
        self.send = self.lab.spawn(sender, command)
        return self

    def progress(self):
        """Pairs (time, bytes delivered to the receiving application), every 50 ms."""
        records = [(at, json.loads(line)) for at, line in list(self.recv.stdout) if '"progress"' in line]
        return [(at, record["bytes"]) for at, record in records]

    def wait_bytes(self, wanted, timeout):
        """Waits until the receiving application has `wanted` bytes; the time that it had."""
        def probe():
            line = next((line for _, line in reversed(self.recv.stdout) if '"progress"' in line), None)
            if line and json.loads(line)["bytes"] >= wanted:
                return time.monotonic()
            return self._early_end()
        at = self.recv.wait_for(probe, timeout, f"did not get {wanted} bytes")
        if at == "ended":
            raise Failed(f"ended before {wanted} bytes were there; sender: {self.send.said()}; receiver: {self.recv.said()}")
        return at

    def _early_end(self):
        return "ended" if self.recv.poll() is not None or self.send.poll() is not None else None

    def wait(self, timeout):
        """Waits for both ends."""
        code = self.send.wait(timeout)
        try:
            self.recv.wait(20)
        except Failed as why:
            raise Failed(f"receiver: {why}\nsender: exit code {code}; said: {self.send.said()}") from None

    def result(self, process):
        """The result object that a side printed, or {}."""
        for _, line in reversed(process.stdout):
            record = json.loads(line)
            if "completed" in record:
                return record
        return {}

    def stored(self):
        """Names in the receiver's directory, part files included."""
        return sorted(entry.name for entry in self.dir.iterdir())

    def received(self):
        """The received file."""
        return self.dir / self.source.name


def check_complete(case, transfer, digest):
    """What every good transfer must show."""
    sent, got = transfer.result(transfer.send), transfer.result(transfer.recv)
    case.check("sender's exit code", transfer.send.code, transfer.send.code == 0, transfer.send.said)
    case.check("receiver's exit code", transfer.recv.code, transfer.recv.code == 0, transfer.recv.said)
    same = transfer.received().exists() and sha256_of(transfer.received()) == digest
    case.check("the file is the same", same, same)
    told = [result.get("sha256") for result in (sent, got)]
    case.check("both sides told its SHA-256", told == [digest] * 2, told == [digest] * 2)
    case.check("nothing else was stored", transfer.stored(), transfer.stored() == [transfer.source.name])
    for name, process in (("sender", transfer.send), ("receiver", transfer.recv)):
        mib = round(process.rss / 2**20, 1)
        case.check(f"{name}'s peak memory", f"{mib} MiB", process.rss < MEMORY_MAX)
        case.note(f"{name}'s CPU time", f"{process.cpu:.1f} s")
    case.note("goodput", mbit(sent.get("goodput_bps", 0)))
    case.note("longest pause in delivery", f"{sent.get('max_delivery_gap_s') or 0:.3f} s")
    for path in sent.get("paths", []):
        case.note(f"path {path['local']} - {path['remote']}", describe(path))
    return sent


def describe(path):
    """A path's counters in one line."""
    states = " ".join(f"{change['at_s']:.2f}s:{change['to']}" for change in path["state_changes"])
    return (f"{path['bytes_sent'] / 1e6:.1f} MB in {path['data_chunks_sent']} chunks,"
            f" {path['retransmissions']} sent again ({path['fast_retransmits']} fast rtx, {path['t3_expirations']} T3),"
            f" srtt {(path['srtt_s'] or 0) * 1000:.1f} ms, cwnd {path['cwnd_bytes']}, {path['state']} {states}")


def mbit(bits_per_second):
    """A rate for people."""
    return f"{bits_per_second / 1e6:.1f} Mbit/s"


def delivered_at(progress, when):
    """Bytes delivered at a time, between two records by interpolation."""
    before = (progress[0][0], 0)
    for record in progress:
        if record[0] >= when:
            (t0, b0), (t1, b1) = before, record
            return b0 + (b1 - b0) * (when - t0) / (t1 - t0) if t1 > t0 else b1
        before = record
    return progress[-1][1]
