#!/usr/bin/env python3
"""The programs that the tests of `manypath emulate` run at its hosts.

    peer.py sink ADDRESS PORT OUT              receives datagrams until SIGTERM, then writes what it saw
    peer.py blast SOURCE ADDRESS PORT MBITS S  sends datagrams at a rate, IP headers included, for S seconds
    peer.py probe SOURCE ADDRESS PORT COUNT MS sends small datagrams at intervals
    peer.py mptcp-serve ADDRESS PORT OUT       accepts one connection by MPTCP and reads it to its end
    peer.py mptcp-send ADDRESS PORT S          connects by MPTCP and sends for S seconds
    peer.py pmtu SOURCE ADDRESS                prints the path MTU that the kernel learns from ICMP

The kernel notes when a datagram arrives, so that a receiver that wakes up late does not matter.
"""

import json
import os
import signal
import socket
import struct
import sys
import time

# Linux's, where Python does not name them.
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
IPPROTO_MPTCP = 262
IP_MTU_DISCOVER, IP_PMTUDISC_DO, IP_MTU = 10, 2, 14
# IPv4 and UDP.
HEADERS = 28


def sink(address, port, out):
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in (socket.SO_RCVBUF, SO_RCVBUFFORCE):
        try:
            own.setsockopt(socket.SOL_SOCKET, option, 16 << 20)
        except PermissionError:
            pass
    own.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    own.bind((address, int(port)))
    seen = []

    def write(*_):
        with open(out, "w") as file:
            json.dump(seen, file)
        os._exit(0)
    signal.signal(signal.SIGTERM, write)
    while True:
        datagram, ((_, _, stamp),), *_ = own.recvmsg(65536, 100)
        seconds, nanos = struct.unpack("qq", stamp)
        number, sent = struct.unpack_from("!QQ", datagram)
        seen.append((number, sent / 1e9, seconds + nanos / 1e9, len(datagram) + HEADERS))


def sender(source, address, port):
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.bind((source, 0))
    own.connect((address, int(port)))
    return own


def blast(source, address, port, mbits, seconds):
    own, begin, number = sender(source, address, port), time.monotonic(), 0
    every = 1500 * 8 / (float(mbits) * 1e6)
    rest = bytes(1500 - HEADERS - 16)
    while (now := time.monotonic()) < begin + float(seconds):
        while begin + number * every <= now:
            own.send(struct.pack("!QQ", number, time.time_ns()) + rest)
            number += 1
        time.sleep(0.0005)
    print(number)
    time.sleep(0.7)


def probe(source, address, port, count, millis):
    own, begin = sender(source, address, port), time.monotonic()
    for number in range(int(count)):
        time.sleep(max(0, begin + number * float(millis) / 1e3 - time.monotonic()))
        own.send(struct.pack("!QQ", number, time.time_ns()) + bytes(100 - HEADERS - 16))
    time.sleep(0.7)


def mptcp_serve(address, port, out):
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    own.bind((address, int(port)))
    own.listen()
    connection, _ = own.accept()
    received, arrivals = 0, []
    while data := connection.recv(1 << 20):
        received += len(data)
        arrivals.append((time.monotonic(), received))
    with open(out, "w") as file:
        json.dump(arrivals, file)
    time.sleep(60)


def mptcp_send(address, port, seconds):
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    own.connect((address, int(port)))
    data, end = bytes(1 << 16), time.monotonic() + float(seconds)
    own.settimeout(1)
    while time.monotonic() < end:
        own.send(data)
    own.close()
    time.sleep(1)


def pmtu(source, address):
    own = sender(source, address, 9)
    own.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
    for _ in range(100):
        try:
            own.send(bytes(1500 - HEADERS))
        except OSError:
            break
        time.sleep(0.02)
    print(own.getsockopt(socket.IPPROTO_IP, IP_MTU))


if __name__ == "__main__":
    {"sink": sink, "blast": blast, "probe": probe, "mptcp-serve": mptcp_serve, "mptcp-send": mptcp_send,
     "pmtu": pmtu}[sys.argv[1]](*sys.argv[2:])
