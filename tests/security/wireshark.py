#!/usr/bin/env python3
"""Tests extras/wireshark/sctp_dtls.lua with tshark, on a capture of a transfer and on damaged packets.

Where there is no tshark (Debian: tshark), it prints SKIPPED and succeeds; with --require it fails.
"""

import argparse
import collections
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from capture import write_pcap  # noqa: E402
from relay import TO_RECEIVER, Relay  # noqa: E402
from requirements import add_binary, add_require, skip  # noqa: E402
from transfer import Transfer  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "extras/wireshark/sctp_dtls.lua"
DTLS, KEY_MANAGEMENT = 0x41, b"\x80\x06\x00\x0a"
FIELDS = ("sctp_dtls.length", "sctp_dtls.restart", "sctp_dtls.epoch", "sctp_dtls.masked_number",
          "sctp_dtls.encrypted_length", "sctp_dtls.km.tie_breaker", "sctp_dtls.km.restart", "sctp_dtls.km.server",
          "sctp_dtls.km.client", "sctp_dtls.km.method", "sctp_dtls_keys.epoch", "sctp_dtls_keys.control_type", "_ws.expert")


def show(path):
    """What tshark shows of each packet: the values of FIELDS, as lists. Errors of the script end in its output."""
    words = ["tshark", "-r", str(path), "-X", f"lua_script:{SCRIPT}", "-T", "fields", "-E", "separator=|"]
    done = subprocess.run([*words, *(word for field in FIELDS for word in ("-e", field))], capture_output=True, text=True,
                          timeout=60)
    said = [line for line in done.stderr.splitlines() if "Running as user" not in line]
    if done.returncode or said or "Lua Error" in done.stdout:
        errors = said or [line for line in done.stdout.splitlines() if "Lua Error" in line]
        raise SystemExit(f"FAILED: tshark: {errors[:3]}")
    return [[value.split(",") if value else [] for value in line.split("|")] for line in done.stdout.splitlines()]


def numbers(values):
    return [int(value, 0) for value in values]


def expected(data):
    """The fields of a packet, from its bytes."""
    kind = data[12]
    if kind == DTLS:
        flags, length = struct.unpack_from("!BH", data, 13)
        head, number = struct.unpack_from("!BH", data, 17)
        return [[length], [flags & 1], [head & 3], [number], [length - 8], [], [], [], [], []]
    if kind in (1, 2):
        # Behind the fixed part of INIT; in an INIT ACK the cookie holds bytes that look the same.
        at = 32
        while data[at:at + 4] != KEY_MANAGEMENT:
            at += -(-struct.unpack_from("!H", data, at + 2)[0] // 4) * 4
        tie_breaker, flags, method = struct.unpack_from("!IBB", data, at + 4)
        return [[], [], [], [], [], [tie_breaker], [flags >> 2 & 1], [flags >> 1 & 1], [flags & 1], [method]]
    return [[] for _ in range(10)]


def transfer(binary, directory):
    """The datagrams of a transfer."""
    with (Transfer(argparse.Namespace(binary=binary), directory, 300_000) as one,
          Relay(one.targets, keep=True) as relay):
        one.start(relay.dest)
        codes = one.wait()
        if codes != (0, 0):
            raise SystemExit(f"FAILED: the transfer: exit codes {codes}: {one.send.said()} {one.recv.said()}")
        return [(direction, data) for direction, _, data in relay.kept]


def damaged(data):
    """A DTLS packet that is damaged in several ways: each with a part of the message that must come."""
    yield data[:12] + struct.pack("!BBH", DTLS, 0, 12) + data[16:24], "Too short"
    yield data[:16] + b"\0\x3f" + data[18:], "Not the record header"
    yield data[:13] + b"\x02" + data[14:], "Reserved bits"
    yield data[:16] + b"\1" + data[17:], "Reserved bits"
    yield data + bytes((11, 0, 0, 4)), "Other chunks"
    yield data[:13] + b"\1" + data[14:], None
    for end in range(12, min(len(data), 60)):
        yield data[:end], None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_binary(parser)
    add_require(parser)
    options = parser.parse_args()
    if not shutil.which("tshark"):
        return skip(options, "the test of the dissector needs tshark")
    with tempfile.TemporaryDirectory(prefix="manypath-test-") as directory:
        capture = Path(directory) / "capture.pcap"
        datagrams = transfer(options.binary, directory)
        write_pcap(capture, datagrams)
        rows, wrong, kinds = show(capture), [], collections.Counter()
        for (_, data), row in zip(datagrams, rows, strict=True):
            booleans = [[value.replace("True", "1").replace("False", "0") for value in values] for values in row[:10]]
            if [numbers(values) for values in booleans] != expected(data):
                wrong.append(f"{data[:40].hex()}: {row}, expected {expected(data)}")
            kinds[data[12]] += 1
            kinds["keys"] += bool(row[10])
            if row[12]:
                kinds["expert"] += "sctp_dtls" in str(row[12])
        seal = next(data for _, data in datagrams if data[12] == DTLS and len(data) < 200)
        cases = list(damaged(seal))
        write_pcap(capture, [(TO_RECEIVER, data) for data, _ in cases])
        for (data, text), row in zip(cases, show(capture), strict=True):
            if text and text not in ",".join(row[12]):
                wrong.append(f"{data.hex()}: says {row[12]}, not {text!r}")
    good = not wrong and kinds[DTLS] > 100 and kinds[1] and kinds[2] and kinds["keys"] >= 3
    print("\n".join(wrong[:5]))
    print(f"{'ok    ' if good else 'FAILED'} dissector: {kinds[DTLS]} DTLS chunks, {kinds[1] + kinds[2]} parameters,"
          f" {kinds['keys']} messages in plain, {len(cases)} damaged packets, {len(wrong)} wrong")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
