"""Someone on all paths who knows everything but the keys: a plan of the relay that changes, replays,
holds back and diverts packets, and adds packets of its own with the right ports and tags.

Each datagram of either direction meets one of these by chance, from a seed:

- "inject" (5 %): a packet of one of the kinds in INJECTED follows it.
- "replay" (2 %): one of the last 2000 datagrams of its direction follows it, on any path.
- "flip" (0.1 %): one of its bits behind the common header changes. Nine times of ten the checksum is
  made right again. The datagram is lost for its receiver, and costs a retransmission.
- "hold" (0.1 %): it leaves 5 to 100 ms late.
- "divert" (0.02 %): it reaches the receiver from an address of a stranger instead.

What is added uses no room of the links: their rate is left to the sender.
"""

import collections
import os
import random
import struct

import records as r
from relay import TO_RECEIVER, TO_SENDER, Plan

CHANCES = {"inject": 0.05, "replay": 0.02, "flip": 0.001, "hold": 0.001, "divert": 0.0002}
# RFC 9260, section 3.3.10.12: User-Initiated Abort.
CAUSE = struct.pack("!HH", 12, 4)
T_BIT = 1
WHOLE = 3  # flags of a DATA chunk with a whole message


class Tamper(Plan):
    """The plan. It begins when the handshake is over: that TLS must not be disturbed is another test."""

    def __init__(self, seed, chances=CHANCES, begin=30):
        """`begin`: the first datagram that is tampered with."""
        self.random, self.chances, self.begin = random.Random(seed), chances, begin
        self.relay, self.number = None, 0
        self.counts = collections.Counter()
        self.past = {TO_RECEIVER: collections.deque(maxlen=2000), TO_SENDER: collections.deque(maxlen=2000)}
        # What is known of the association, each by direction: verification tags, and whole packets.
        self.tags, self.ports, self.known = {}, {}, {}
        self.tsn, self.acked, self.restarts = {}, {}, set()

    def datagram(self, flow, direction, data):
        if (taken := self.restart(flow, direction, data)) is not None:
            return taken
        self.learn(direction, data)
        self.number += 1
        if self.number < self.begin or len(self.tags) < 2:
            return [(0, data)]
        roll = self.random.random()
        for what, chance in self.chances.items():
            roll -= chance
            if roll < 0:
                done = getattr(self, what)(flow, direction, data)
                self.counts[what] += done is not None
                return [(0, data)] if done is None else done
        return [(0, data)]

    def learn(self, direction, data):
        """What packets show to everybody."""
        self.past[direction].append(data)
        self.ports[direction] = struct.unpack_from("!HH", data)
        tag, kind = struct.unpack_from("!IB", data, 4)[0], data[r.HEADER]
        if kind in (r.INIT, r.INIT_ACK, r.COOKIE_ECHO, r.COOKIE_ACK):
            self.known[direction, kind] = data
        if kind not in (r.INIT, r.INIT_ACK):
            self.tags[direction] = tag
        if kind == r.DATA:
            self.tsn[direction] = struct.unpack_from("!I", data, r.HEADER + 4)[0]
        if kind == r.SACK:
            self.acked[direction] = struct.unpack_from("!I", data, r.HEADER + 4)[0]

    def restart(self, flow, direction, data):
        """Goes on with the handshake that an injected INIT began: the other end never sees its INIT ACK."""
        if len(data) < 40 or data[r.HEADER] != r.INIT_ACK or struct.unpack_from("!I", data, 4)[0] not in self.restarts:
            return None
        tag = struct.unpack_from("!I", data, r.HEADER + 4)[0]
        (_, _, value), *_ = r.chunks_of(data[r.HEADER:])
        cookie = r.parameters_of(value).get(r.STATE_COOKIE, bytes(4))[4:]
        back = 1 - direction
        self.relay.inject(flow, back, r.packet(*self.ports[back], tag, r.chunk(r.COOKIE_ECHO, 0, cookie)))
        self.counts["inject: restart"] += 1
        return []

    def inject(self, flow, direction, data):
        kind = self.random.choice(list(INJECTED))
        packet = INJECTED[kind](self, direction, data)
        if packet is None:
            return None
        self.counts[f"inject: {kind}"] += 1
        self.relay.inject(flow, direction, packet)
        return [(0, data)]

    def replay(self, flow, direction, data):
        old = self.random.choice(self.past[direction])
        flows = [other for other in self.relay.flows.values()]
        self.relay.inject(self.random.choice(flows), direction, old)
        return [(0, data)]

    def flip(self, flow, direction, data):
        bit = self.random.randrange(8 * r.HEADER, 8 * len(data))
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        return [(0, bytes(changed) if self.random.random() < 0.1 else r.with_checksum(bytes(changed)))]

    def hold(self, flow, direction, data):
        return [(self.random.uniform(0.005, 0.1), data)]

    def divert(self, flow, direction, data):
        if direction == TO_SENDER:
            return None
        self.relay.divert(flow, data)
        return []

    def packet(self, direction, *chunks, tag=None):
        """A packet with the right ports and tag."""
        return r.packet(*self.ports[direction], self.tags[direction] if tag is None else tag, *chunks)

    def init(self, direction, data):
        """An INIT as the other end sent it, with a tag of ours: an attempt to restart the association."""
        old = self.known.get((TO_RECEIVER, r.INIT))
        if old is None:
            return None
        tag = self.random.randrange(1, 2**32)
        self.restarts.add(tag)
        value = old[r.HEADER + 4:]
        if self.random.random() < 0.5:
            # Without anything that asks for protection.
            value = value[:16]
        return self.packet(direction, r.chunk(r.INIT, 0, struct.pack("!I", tag) + value[4:]), tag=0)

    def copy_of(self, direction, kind):
        return self.known.get((direction, kind))

    def newest(self, direction):
        """The TSN that the other end sent last, as far as it can be seen; else any."""
        return self.tsn.get(direction, self.random.randrange(2**32))

    def junk(self, length):
        """The bytes of a record that nobody sealed, of any epoch."""
        return bytes([0x28 | self.random.randrange(4)]) + os.urandom(length - 1)


INJECTED = {
    "INIT": Tamper.init,
    "ABORT": lambda t, d, _: t.packet(d, r.chunk(r.ABORT, 0, CAUSE)),
    "ABORT with T": lambda t, d, _: t.packet(d, r.chunk(r.ABORT, T_BIT, CAUSE), tag=t.tags[1 - d]),
    "SHUTDOWN": lambda t, d, _: t.packet(d, r.chunk(r.SHUTDOWN, 0, struct.pack("!I", t.newest(1 - d)))),
    "SHUTDOWN ACK": lambda t, d, _: t.packet(d, r.chunk(r.SHUTDOWN_ACK, 0, b"")),
    "SHUTDOWN COMPLETE": lambda t, d, _: t.packet(d, r.chunk(r.SHUTDOWN_COMPLETE, 0, b"")),
    "SACK": lambda t, d, _: t.packet(d, r.chunk(r.SACK, 0, struct.pack("!IIHH", t.newest(1 - d), 1 << 20, 0, 0))),
    "HEARTBEAT": lambda t, d, _: t.packet(d, r.chunk(r.HEARTBEAT, 0, struct.pack("!HH", 1, 36) + os.urandom(32))),
    "HEARTBEAT ACK": lambda t, d, _: t.packet(d, r.chunk(r.HEARTBEAT_ACK, 0, struct.pack("!HH", 1, 36) + os.urandom(32))),
    "ERROR": lambda t, d, _: t.packet(d, r.chunk(r.ERROR, 0, struct.pack("!HH", 6, 8) + os.urandom(4))),
    "COOKIE ECHO": lambda t, d, _: t.copy_of(d, r.COOKIE_ECHO),
    "COOKIE ACK": lambda t, d, _: t.packet(d, r.chunk(r.COOKIE_ACK, 0, b"")),
    "INIT ACK": lambda t, d, _: t.copy_of(d, r.INIT_ACK),
    "DATA": lambda t, d, _: t.packet(d, r.chunk(r.DATA, WHOLE, struct.pack("!IHHI", (t.newest(d) + 1) % 2**32, 0, 0,
                                                                         r.PPID_CONTENT) + os.urandom(1000))),
    "junk": lambda t, d, data: t.packet(d, r.dtls_chunk(t.junk(max(20, len(data) - 17)))),
    "short junk": lambda t, d, _: t.packet(d, r.dtls_chunk(t.junk(t.random.randrange(1, 24)))),
    "junk with R": lambda t, d, _: t.packet(d, r.dtls_chunk(t.junk(60), flags=1)),
    # A record that is authentic, with a chunk beside it that is not.
    "bundle": lambda t, d, data: r.with_checksum(data + r.chunk(r.ABORT, 0, CAUSE)),
}
