#!/usr/bin/env python3
"""A link in user space: two TUN devices, and what each sends comes out of the other, late or not at all.

    wire.py LEFT RIGHT [--delay-ms 30] [--then-delay-ms 400] [--loss 0.01] [--seed 7] [--nat ADDRESS]

It makes the devices where it is started and says "ready"; they can then be moved into other namespaces.
With --nat, UDP of the left side appears on the right as ADDRESS and a port of the translator's; SIGUSR1
makes it forget its table, so that each flow gets a new port, as a home router does that was restarted.
From SIGUSR2 on packets take --then-delay-ms.
"""

import argparse
import collections
import fcntl
import os
import random
import select
import signal
import struct
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
UDP, FIRST_PORT, LAST_PORT = 17, 20000, 60000
QUEUE_MAX = 20000  # packets on their way, each direction


def open_tun(name):
    """A TUN device's file descriptor."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return fd


def adjust(checksum, old, new):
    """An Internet checksum after `old` became `new`, both of whole 16-bit words (RFC 1624, eqn. 3)."""
    total = ~checksum & 0xFFFF
    for before, after in zip(struct.unpack(f"!{len(old) // 2}H", old), struct.unpack(f"!{len(new) // 2}H", new)):
        total += (~before & 0xFFFF) + after
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def rewrite(packet, address_at, port_at, address, port):
    """Replaces an address and a port of a UDP packet over IPv4, and mends both checksums."""
    old_address, old_port = packet[address_at:address_at + 4], packet[port_at:port_at + 2]
    packet[10:12] = struct.pack("!H", adjust(struct.unpack_from("!H", packet, 10)[0], old_address, address))
    sum_at = (packet[0] & 15) * 4 + 6
    checksum = struct.unpack_from("!H", packet, sum_at)[0]
    if checksum:  # 0: none was computed
        packet[sum_at:sum_at + 2] = struct.pack("!H", adjust(checksum, old_address + old_port, address + port) or 0xFFFF)
    packet[address_at:address_at + 4], packet[port_at:port_at + 2] = address, port


class Nat:
    """Address and port translation (RFC 4787: endpoint-independent)."""

    def __init__(self, address):
        self.address = bytes(int(part) for part in address.split("."))
        self.next_port = FIRST_PORT
        self.forget()

    def forget(self):
        """Drops all bindings; ports are not given out twice."""
        self.out, self.back = {}, {}

    def outward(self, packet):
        """Left to right; None drops."""
        header = (packet[0] & 15) * 4
        if packet[0] >> 4 != 4 or packet[9] != UDP:
            return None
        flow = bytes(packet[12:16] + packet[header:header + 2])
        port = self.out.get(flow)
        if port is None:
            if self.next_port > LAST_PORT:
                return None
            port = struct.pack("!H", self.next_port)
            self.next_port += 1
            self.out[flow], self.back[port] = port, flow
        rewrite(packet, 12, header, self.address, port)
        return packet

    def inward(self, packet):
        """Right to left; what nobody asked for is dropped."""
        header = (packet[0] & 15) * 4
        if packet[0] >> 4 != 4 or packet[9] != UDP:
            return None
        flow = self.back.get(bytes(packet[header + 2:header + 4]))
        if flow is None or bytes(packet[16:20]) != self.address:
            return None
        rewrite(packet, 16, header + 2, flow[:4], flow[4:])
        return packet


class Direction:
    """What goes from one device to the other."""

    def __init__(self, source, sink, change, args, rng):
        self.source, self.sink, self.change = source, sink, change
        self.delay, self.loss, self.rng = args.delay_ms / 1000, args.loss, rng
        self.waiting = collections.deque()

    def take(self, now):
        """Reads what the source has, at most a few packets at a time."""
        for _ in range(64):
            try:
                packet = os.read(self.source, 65536)
            except OSError:  # nothing there, or the device is just being moved
                return
            if self.rng.random() < self.loss or len(self.waiting) >= QUEUE_MAX:
                continue
            if self.change:
                packet = self.change(bytearray(packet))
                if packet is None:
                    continue
            self.waiting.append((now + self.delay, packet))

    def give(self, now):
        """Writes what is due; the time of the next, or None."""
        while self.waiting and self.waiting[0][0] <= now:
            try:
                os.write(self.sink, self.waiting.popleft()[1])
            except OSError:
                pass  # the device is down, or full: a lost packet
        return self.waiting[0][0] if self.waiting else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("left")
    parser.add_argument("right")
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--then-delay-ms", type=float, default=0)
    parser.add_argument("--loss", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nat")
    args = parser.parse_args()

    os.nice(-10)  # a link does not wait for a processor
    # Nor does it reorder, as packets may that are handed to the kernel on two processors.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    left, right = open_tun(args.left), open_tun(args.right)
    nat = Nat(args.nat) if args.nat else None
    if nat:
        signal.signal(signal.SIGUSR1, lambda *_: nat.forget())
    ways = [
        Direction(left, right, nat and nat.outward, args, random.Random(f"{args.seed} right")),
        Direction(right, left, nat and nat.inward, args, random.Random(f"{args.seed} left")),
    ]

    def slow_down(*_):
        for way in ways:
            way.delay = args.then_delay_ms / 1000
    signal.signal(signal.SIGUSR2, slow_down)
    poll = select.epoll()
    for way in ways:
        poll.register(way.source, select.EPOLLIN)
    print("ready", flush=True)
    due = None
    while True:
        timeout = None if due is None else max(0.0, due - time.monotonic())
        ready = {fd for fd, event in poll.poll(timeout) if event & select.EPOLLIN}
        now = time.monotonic()
        nexts = []
        for way in ways:
            if way.source in ready:
                way.take(now)
            nexts.append(way.give(now))
        due = min((at for at in nexts if at is not None), default=None)


if __name__ == "__main__":
    main()
