#!/usr/bin/env python3
"""A router in user space that numbers the packets that it sends, from one counter or from one for each address.

    counting.py one|each DEVICE=ADDRESS,NET[,NET...] ...

It makes a TUN device for each word and says "ready"; they can then be moved into other namespaces. It has ADDRESS on
that device, and forwards packets to NET (a.b.c.d/bits) through it. As Linux numbers packets for each pair of addresses,
no kernel answers here: the router says itself that a packet's life has ended, and that nobody listens on a UDP port.
"""

import collections
import ipaddress
import itertools
import os
import select
import socket
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from wire import UDP, adjust, open_tun  # noqa: E402

ICMP, UNREACHABLE, EXCEEDED = 1, (3, 3), (11, 0)
FIRST = 1000  # of each counter
QUOTED = 128  # bytes of a packet after its header that a message quotes at most (RFC 1812, section 4.3.2.3)


def checksum(data):
    """The Internet checksum (RFC 1071)."""
    data = data + b"\0" * (len(data) % 2)
    return adjust(0xFFFF, b"\0" * len(data), data)


class Port:
    """A device with the router's address on it, and the networks beyond it."""

    def __init__(self, words):
        self.name, _, rest = words.partition("=")
        address, *nets = rest.split(",")
        self.address = socket.inet_aton(address)
        self.nets = [ipaddress.ip_network(net) for net in nets]
        self.fd = open_tun(self.name)

    def leads_to(self, address):
        """True if the address is in a network beyond it."""
        return any(ipaddress.ip_address(address) in net for net in self.nets)


class Router:
    """Forwards packets between its ports, and answers those that go no further."""

    def __init__(self, ports, shared):
        self.ports = ports
        self.own = {port.address for port in ports}
        one = itertools.count(FIRST)
        self.counters = collections.defaultdict(lambda: one if shared else itertools.count(FIRST))

    def take(self, port, packet):
        """A packet that came in through a port."""
        if len(packet) < 28 or packet[0] >> 4 != 4:
            return
        target = bytes(packet[16:20])
        if target in self.own:
            if packet[9] == UDP:
                self.answer(port, packet, target, UNREACHABLE)
        elif packet[8] <= 1:
            self.answer(port, packet, port.address, EXCEEDED)
        else:
            self.forward(packet, target)

    def forward(self, packet, target):
        """Sends a packet on; it lives for one hop less."""
        beyond = next((port for port in self.ports if port.leads_to(target)), None)
        if beyond:
            before = bytes(packet[8:10])
            packet[8] -= 1
            packet[10:12] = struct.pack("!H", adjust(*struct.unpack_from("!H", packet, 10), before, bytes(packet[8:10])))
            os.write(beyond.fd, packet)

    def answer(self, port, packet, source, kind):
        """Tells the sender by ICMP, through the port that the packet came from, what became of it."""
        quoted = bytes(packet[:(packet[0] & 15) * 4 + QUOTED])
        message = struct.pack("!BBHI", *kind, 0, 0) + quoted
        message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
        number = next(self.counters[source]) & 0xFFFF
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(message), number, 0, 64, ICMP, 0, source,
                             bytes(packet[12:16]))
        header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
        os.write(port.fd, header + message)

    def run(self):
        """Works until it is killed."""
        ports = {port.fd: port for port in self.ports}
        while True:
            for fd in select.select(list(ports), [], [])[0]:
                try:
                    self.take(ports[fd], bytearray(os.read(fd, 65536)))
                except OSError:
                    pass  # a device that is down, or being moved


def main():
    """The command."""
    shared = {"one": True, "each": False}[sys.argv[1]]
    router = Router([Port(words) for words in sys.argv[2:]], shared)
    print("ready", flush=True)
    router.run()


if __name__ == "__main__":
    main()
