#!/usr/bin/env python3
"""Programs that run beside the transfers, at the emulated hosts. They measure any system in the
same way.

    probes.py count OUT                 notes what the host has received by each interface, every 20 ms until it is killed
    probes.py sink PORT OUT             receives datagrams until SIGTERM, then writes the one-way delays
    probes.py send ADDRESS PORT SECONDS sends small datagrams, one every 20 ms

All hosts are on one machine, so they share its clocks.
"""
import json
import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path

EVERY_S = 0.02
# Linux's, which Python does not name.
SO_TIMESTAMPNS = 35
PROBE = struct.Struct("!Q")


def received_bytes():
    """IP bytes that each interface has received; no other host's, since /proc/net belongs to the
    namespace.
    """
    lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()[2:]
    columns = [line.replace(":", " ").split() for line in lines]
    return {words[0]: int(words[1]) for words in columns if words[0] != "lo"}


def count(out):
    with open(out, "w", encoding="ascii", buffering=1) as file:
        next_s = time.monotonic()
        while True:
            file.write(json.dumps([time.monotonic(), received_bytes()]) + "\n")
            next_s = max(next_s + EVERY_S, time.monotonic())
            time.sleep(max(0.0, next_s - time.monotonic()))


def sink(port, out):
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # The kernel notes the arrival, so a receiver that wakes up late does not matter.
    own.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    own.bind(("0.0.0.0", int(port)))
    seen = []

    def write(*_):
        with open(out, "w", encoding="ascii") as file:
            json.dump(seen, file)
        os._exit(0)
    signal.signal(signal.SIGTERM, write)
    while True:
        datagram, ((_, _, stamp),), *_ = own.recvmsg(2048, 100)
        seconds, nanos = struct.unpack("qq", stamp)
        sent, = PROBE.unpack_from(datagram)
        seen.append((sent / 1e9, (seconds * 10**9 + nanos - sent) / 1e9))


def send(address, port, seconds):
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.connect((address, int(port)))
    begin = time.monotonic()
    for number in range(int(float(seconds) / EVERY_S)):
        time.sleep(max(0.0, begin + number * EVERY_S - time.monotonic()))
        own.send(PROBE.pack(time.time_ns()) + bytes(32))


if __name__ == "__main__":
    {"count": count, "sink": sink, "send": send}[sys.argv[1]](*sys.argv[2:])
