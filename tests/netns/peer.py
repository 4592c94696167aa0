#!/usr/bin/env python3
"""A peer that speaks SCTP over UDP by hand, as much of it as a stranger likes. One socket, and an SCTP port for each
association. Commands: idle, hoard, abort, flood; see their functions."""

import argparse
import random
import select
import socket
import struct
import sys
import time

SCTP_PORT = 9899
INIT, INIT_ACK, HEARTBEAT, ABORT, SHUTDOWN_ACK, COOKIE_ECHO, COOKIE_ACK = 1, 2, 4, 6, 8, 10, 11
DATA, DTLS, STATE_COOKIE = 0, 0x41, 7
WHOLE = 3
FIRST_TSN = 1000
UDP_SEGMENT = 103
# The transfer protocol's frames, and a hello's first bytes; docs/protocol-transfer.md.
PPID_FRAME = 0x6D70_0001
# The parameter of an INIT that offers to protect the association (draft-ietf-tsvwg-sctp-dtls-chunk): a tie breaker,
# the role of the client, and one method, TLS. Its messages have a PPID of their own.
KEY_MANAGEMENT = struct.pack("!HHIBB", 0x8006, 10, 1, 1, 192)
PPID_KEYS = 4242


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F6_3B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def crc32c(data):
    crc = 0xFFFF_FFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFF_FFFF


def hello(token, more=bytes(12)):
    """The first frame of a sender, which ends with the number of its files and their size."""
    return b"\x01MPFT\x02" + bytes([len(token)]) + token.encode() + more


def packet(port, tag, *chunks):
    """An SCTP packet of chunks, each (type, flags, value)."""
    body = b""
    for kind, flags, value in chunks:
        body += struct.pack("!BBH", kind, flags, 4 + len(value)) + value + bytes(-len(value) % 4)
    head = struct.pack("!HHI", port, SCTP_PORT, tag)
    return head + struct.pack("<I", crc32c(head + bytes(4) + body)) + body


def chunks_of(data):
    """The chunks of a packet: type and value of each."""
    at = 12
    while at + 4 <= len(data):
        kind, _, length = struct.unpack_from("!BBH", data, at)
        if length < 4:
            return
        yield kind, data[at + 4:at + length]
        at += length + -length % 4


def cookie_of(value):
    """The state cookie among the parameters of an INIT ACK."""
    at = 16
    while at + 4 <= len(value):
        kind, length = struct.unpack_from("!HH", value, at)
        if kind == STATE_COOKIE:
            return value[at + 4:at + length]
        at += length + -length % 4
    raise ValueError("no cookie")


class Peer:
    def __init__(self, server, local=None, protected=False, offer=b""):
        """`offer` are further parameters of its INITs."""
        self.offer = KEY_MANAGEMENT if protected else offer
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if local:
            self.socket.bind((local, 0))
        self.socket.connect(server)

    def next(self, port, kinds, timeout=0.5):
        """The first chunk of these kinds that comes to an SCTP port: kind and value."""
        until = time.monotonic() + timeout
        while (left := until - time.monotonic()) > 0:
            if not select.select([self.socket], [], [], left)[0]:
                break
            data = self.socket.recv(65536)
            if struct.unpack_from("!H", data, 2)[0] != port:
                continue
            for kind, value in chunks_of(data):
                if kind in kinds:
                    return kind, value
        return None, b""

    def open(self, port):
        """Opens an association from an SCTP port; the server's tag, or None if it refuses."""
        init = struct.pack("!IIHHI", port + 1, 65536, 4, 4, FIRST_TSN) + self.offer
        for _ in range(20):
            self.socket.send(packet(port, 0, (INIT, 0, init)))
            kind, value = self.next(port, (INIT_ACK, ABORT))
            if kind == ABORT:
                return None
            if kind is None:
                continue
            tag = struct.unpack_from("!I", value)[0]
            self.socket.send(packet(port, tag, (COOKIE_ECHO, 0, cookie_of(value))))
            kind, _ = self.next(port, (COOKIE_ACK, ABORT))
            if kind == ABORT:
                return None
            if kind == COOKIE_ACK:
                return tag
        raise SystemExit("the server does not answer")

    def data(self, port, tag, index, payload, ppid=0):
        """A packet with a whole message of stream 0, `index` TSNs and messages after the first."""
        head = struct.pack("!IHHI", (FIRST_TSN + index) % 2**32, 0, index % 65536, ppid)
        return packet(port, tag, (DATA, WHOLE, head + payload))


def idle(server, options):
    """Opens associations and says nothing on them."""
    addresses = options.local.split(",") if options.local else [None]
    peers = [Peer(server, local, options.protected) for local in addresses]
    refused = 0
    for i in range(options.count):
        refused += peers[i % len(peers)].open(1 + i) is None
    print(f"opened {options.count - refused}, refused {refused}", flush=True)
    time.sleep(options.stay)


def hoard(server, options):
    """Opens associations, with a hello if there is a token, and sends trains of datagrams of which one counts: its
    payload is out of order, so that the server must hold it."""
    peer = Peer(server, protected=options.protected)
    ppid = PPID_KEYS if options.protected else 0
    segments = min(64, 64000 // options.segment)
    for i in range(options.count):
        port = 1 + i
        tag = peer.open(port)
        if tag is None:
            print("refused", flush=True)
            continue
        first = 0
        if options.token:
            peer.socket.send(peer.data(port, tag, 0, hello(options.token), PPID_FRAME))
            if peer.next(port, (DATA,), 5)[0] is None:
                raise SystemExit("no welcome")
            first = 1
        peer.socket.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, options.segment)
        for train in range(options.trains):
            # The last of a train may be shorter. What is all zeros is no packet of anybody.
            last = peer.data(port, tag, first + 1 + train, bytes(options.payload), ppid)
            peer.socket.send(bytes(options.segment * (segments - 1)) + last)
            # The server reads as fast; what its socket has no room for would be lost.
            if train % 8 == 7:
                time.sleep(0.001)
        peer.socket.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 0)
    print("hoarded", flush=True)
    time.sleep(options.stay)


def abort(server, options):
    """Opens associations and aborts them, for a time, with a reason that clears a terminal."""
    peer, count, until = Peer(server, protected=options.protected), 0, time.monotonic() + options.stay
    reason = b"\x1b[2J"
    cause = struct.pack("!HH", 12, 4 + len(reason)) + reason
    while time.monotonic() < until:
        port = 1 + count % 60000
        tag = peer.open(port)
        if tag is not None:
            peer.socket.send(packet(port, tag, (ABORT, 0, cause)))
        count += 1
    print(f"aborted {count}", flush=True)


def junk(rng, kind):
    """A datagram of 100 bytes that belongs to no association."""
    port, tag = rng.randrange(1, 65536), rng.randrange(1, 2**32)
    if kind == "noise":
        return rng.randbytes(100)
    if kind in ("init", "init-protected"):
        init = struct.pack("!IIHHI", tag, 65536, 4, 4, tag)
        init += KEY_MANAGEMENT + bytes(2) if kind == "init-protected" else b""
        left = 84 - len(init)
        return packet(port, 0, (INIT, 0, init + struct.pack("!HH", 0x8005, left) + bytes(left - 4)))
    what = {
        "cookie-echo": COOKIE_ECHO,
        "data": DATA,
        "heartbeat": HEARTBEAT,
        "abort": ABORT,
        "shutdown-ack": SHUTDOWN_ACK,
        "sealed": DTLS,
    }
    flags = WHOLE if kind == "data" else 0
    return packet(port, tag, (what[kind], flags, rng.randbytes(84)))


def flood(server, options):
    """Sends datagrams that belong to no association, `rate` a second, in trains of 64."""
    rng = random.Random(1)
    trains = [b"".join(junk(rng, options.kind) for _ in range(64)) for _ in range(100)]
    peer = Peer(server)
    peer.socket.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 100)
    peer.socket.setblocking(False)
    begin, sent, missed = time.monotonic(), 0, 0
    while (since := time.monotonic() - begin) < options.stay:
        if sent > since * options.rate:
            time.sleep(0.0005)
            continue
        try:
            peer.socket.send(trains[sent // 64 % len(trains)])
        except (BlockingIOError, ConnectionRefusedError):
            missed += 64
        sent += 64
        # What it answers is not wanted.
        try:
            peer.socket.recv(65536)
        except (BlockingIOError, ConnectionRefusedError):
            pass
    print(f"flooded {(sent - missed) / options.stay:.0f} a second", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("idle", "hoard", "abort", "flood"))
    parser.add_argument("server", help="ADDRESS:PORT")
    parser.add_argument("--count", type=int, default=33, help="associations")
    parser.add_argument("--local", help="addresses to come from, one after the other")
    parser.add_argument("--stay", type=float, default=60, help="seconds to stay afterwards, or to go on")
    parser.add_argument("--token", help="shown in a hello")
    parser.add_argument("--protected", action="store_true",
                        help="offers to protect associations, and never begins to; what it hoards is for key management")
    parser.add_argument("--segment", type=int, default=1472, help="bytes of each datagram of a train")
    parser.add_argument("--payload", type=int, default=512, help="bytes of each train that the server must hold")
    parser.add_argument("--trains", type=int, default=16000)
    parser.add_argument("--kind", default="noise", help="what a flood is of: noise, or the name of a chunk")
    parser.add_argument("--rate", type=int, default=100_000, help="datagrams of a flood a second")
    options = parser.parse_args()
    host, port = options.server.rsplit(":", 1)
    {"idle": idle, "hoard": hoard, "abort": abort, "flood": flood}[options.what]((host, int(port)), options)


if __name__ == "__main__":
    sys.exit(main())
