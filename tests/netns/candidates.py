#!/usr/bin/env python3
"""A sender that names thousands of candidates, none of which is its own: addresses of third parties, to which the
receiver would send checks (docs/direct.md). Meanwhile it sends a file as others do, a little each time."""

import argparse
import hashlib
import ipaddress
import random
import select
import struct
import sys
import time

from peer import ABORT, DATA, HEARTBEAT, PPID_FRAME, SHUTDOWN_ACK, Peer, chunks_of, hello, packet

SACK, HEARTBEAT_ACK, SHUTDOWN, SHUTDOWN_COMPLETE, CANDIDATES = 3, 5, 7, 14, 0xB8
# The parameter Supported Extensions of an INIT: it takes part in the exchange of candidates.
TAKES_PART = struct.pack("!HHB", 0x8008, 5, CANDIDATES) + bytes(3)
PPID_CONTENT = 0x6D70_0002
PORT = 1
LIST_MAX = 32  # what a receiver takes of a list
PIECE = 1000  # bytes of content with each list
AGAIN = 0.5  # seconds after which a message is sent again
WELCOME, READY, SUMMARY = 16, 20, 18


class Sender:
    """One association, with a file whose size nobody knows before its end."""

    def __init__(self, server, token):
        self.peer = Peer(server, offer=TAKES_PART)
        self.tag = self.peer.open(PORT)
        if self.tag is None:
            raise SystemExit("refused")
        self.index, self.sent, self.frames, self.is_over, self.heard = 0, 0, [], False, 0
        self.unacknowledged, self.digest = {}, hashlib.sha256()
        self.say(hello(token, struct.pack("!IQ", 1 | 1 << 30 | 1 << 31, 0)))
        self.wait(WELCOME)
        name = b"source.bin"
        self.say(b"\x02" + struct.pack("!IBQIqIH", 0, 0, 2**64 - 1, 2**32 - 1, 0, 10**9, len(name)) + name)
        self.wait(READY)
        self.say(b"\x06" + struct.pack("!IQ", 0, 0))

    def put(self, *chunks):
        """Sends a packet of chunks."""
        data = packet(PORT, self.tag, *chunks)
        self.sent += len(data)
        self.peer.socket.send(data)

    def say(self, message, ppid=PPID_FRAME):
        """Sends a message, again and again until the receiver has it."""
        data = self.peer.data(PORT, self.tag, self.index, message, ppid)
        self.unacknowledged[1000 + self.index] = [time.monotonic(), data]
        self.index += 1
        self.sent += len(data)
        self.peer.socket.send(data)

    def send_piece(self, rng):
        """Sends the next content."""
        piece = rng.randbytes(PIECE)
        self.digest.update(piece)
        self.say(piece, PPID_CONTENT)

    def finish(self):
        """Ends the file, and the association when the receiver has stored it."""
        self.say(b"\x03" + struct.pack("!IB", 0, 0) + self.digest.digest())
        self.say(b"\x04" + struct.pack("!I", 1))
        self.wait(SUMMARY)
        until = time.monotonic() + 5
        while not self.is_over and time.monotonic() < until:
            self.put((SHUTDOWN, 0, struct.pack("!I", self.heard)))
            self.listen(0.5)

    def wait(self, frame):
        """Waits for a frame of the receiver."""
        until = time.monotonic() + 20
        while frame not in self.frames:
            if time.monotonic() > until:
                raise SystemExit(f"no frame {frame}, only {self.frames}")
            self.listen(0.05)

    def listen(self, seconds):
        """Answers what arrives for a time, and repeats what was not acknowledged."""
        until = time.monotonic() + seconds
        while not self.is_over and (left := until - time.monotonic()) > 0:
            if select.select([self.peer.socket], [], [], left)[0]:
                for kind, value in chunks_of(self.peer.socket.recv(65536)):
                    self.hear(kind, value)
        now = time.monotonic()
        for waiting in self.unacknowledged.values():
            if now - waiting[0] > AGAIN:
                waiting[0] = now
                self.peer.socket.send(waiting[1])

    def hear(self, kind, value):
        """Handles a chunk."""
        if kind == HEARTBEAT:
            self.put((HEARTBEAT_ACK, 0, value))
        elif kind == DATA:
            self.heard = struct.unpack_from("!I", value)[0]
            self.frames.append(value[12])
            self.put((SACK, 0, struct.pack("!IIHH", self.heard, 65536, 0, 0)))
        elif kind == SACK:
            heard = struct.unpack_from("!I", value)[0]
            self.unacknowledged = {tsn: waiting for tsn, waiting in self.unacknowledged.items() if tsn > heard}
        elif kind == SHUTDOWN_ACK:
            self.put((SHUTDOWN_COMPLETE, 0, b""))
            self.is_over = True
        elif kind == ABORT:
            raise SystemExit(f"aborted: {value!r}")


def third_party(number, host, network):
    """A candidate: a port of the host, or an address of the network, one after the other."""
    kind, base = 0x04, number % 256  # an address of its own, of version 4
    address, port = (host, 1024 + number) if number % 2 else (network[number], 53)
    return struct.pack("!BBH", kind, base, port) + ipaddress.IPv4Address(address).packed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", help="ADDRESS:PORT")
    parser.add_argument("--token", required=True)
    parser.add_argument("--count", type=int, default=10_000, help="candidates to name")
    parser.add_argument("--host", required=True, help="a third party, of which ports are named")
    parser.add_argument("--network", required=True, help="of which addresses are named")
    parser.add_argument("--gap", type=float, default=0.06, help="seconds between two lists")
    parser.add_argument("--stay", type=float, default=5, help="seconds to go on after the last list")
    options = parser.parse_args()
    host, port = options.server.rsplit(":", 1)
    rng, network = random.Random(1), ipaddress.ip_network(options.network)
    sender = Sender((host, int(port)), options.token)
    began = time.monotonic()
    for serial, first in enumerate(range(0, options.count, LIST_MAX), 1):
        named = range(first, min(first + LIST_MAX, options.count))
        entries = b"".join(third_party(number, options.host, network) for number in named)
        sender.put((CANDIDATES, 1, struct.pack("!II", serial, 0) + entries))
        sender.send_piece(rng)
        sender.listen(options.gap)
    until = time.monotonic() + options.stay
    while time.monotonic() < until:
        sender.send_piece(rng)
        sender.listen(options.gap)
    sender.finish()
    print(f"named {options.count} in {time.monotonic() - began:.1f} s, sent {sender.sent} bytes,"
          f" SHA-256 {sender.digest.hexdigest()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
