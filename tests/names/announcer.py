#!/usr/bin/env python3
"""A stranger in the local network, who speaks multicast DNS without manypath's code.

    announcer.py forge ADDRESS NAME KEY PORT     announces a receiver with another one's key, until it is stopped
    announcer.py flood SECONDS                   sends whatever could do harm to those who listen
    announcer.py goodbye                         waits until a receiver takes its announcement back

Sends on every interface that has an IPv4 address but loopback.
"""

import os
import random
import socket
import struct
import subprocess
import sys
import time

GROUP, PORT = "224.0.0.251", 5353
SERVICE = b"\x09_manypath\x04_udp\x05local\x00"
PTR, TXT, A, SRV, IN, FLUSH = 12, 16, 1, 33, 1, 0x8001
KEY = "sha256:" + "ab" * 32


def addresses():
    words = ["ip", "-4", "-o", "addr"]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split()[3].split("/")[0] for line in lines]
    return [ip for ip in found if not ip.startswith("127.")]


def open_socket(ip):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("", PORT))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(ip))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton(ip))
    return sock


def label(text):
    data = text.encode()
    return bytes([len(data)]) + data


def record(name, kind, data, ttl=120, count=None):
    cls = IN if kind == PTR else FLUSH
    return name + struct.pack("!HHIH", kind, cls, ttl, len(data) if count is None else count) + data


def response(*records, count=None):
    return struct.pack("!6H", 0, 0x8400, 0, len(records) if count is None else count, 0, 0) + b"".join(records)


def announcement(name, key=KEY, port=9899, address="10.99.0.1", strings=None, more=()):
    digits = key.removeprefix("sha256:")[:16]
    instance = label(f"{name}-{digits}") + SERVICE
    host = label(f"manypath-{digits}") + b"\x05local\x00"
    if strings is None:
        strings = ["v=1", f"name={name}", "auth=code", f"key={key}"]
    return response(
        record(SERVICE, PTR, instance),
        record(instance, SRV, struct.pack("!HHH", 0, 0, port) + host),
        record(instance, TXT, b"".join(map(label, strings))),
        record(host, A, socket.inet_aton(address)),
        *more,
    )


def query():
    return struct.pack("!6H", 0, 0, 1, 0, 0, 0) + SERVICE + struct.pack("!HH", PTR, IN)


def harmful(chance):
    """Datagrams without end, none of which announces a receiver with the name laptop."""
    n = 0
    while True:
        n += 1
        key = f"sha256:{n:064x}"
        yield announcement(f"noise{n}", f"sha256:{n * 0x9e3779b97f4a7c15 % 2**64:016x}" + "0" * 48)
        yield announcement("laptop", key, strings=["v=1", "name=laptop\x1b[2J", "auth=code", f"key={key}"])
        yield announcement("laptop", key, strings=["v=1", "name=laptop", "auth=nothing"])
        yield announcement("laptop", key, strings=["x" * 255] * 30)
        yield announcement(f"wide{n % 1000}", key, more=[record(b"\x01a\x00", A, bytes(4))] * 500)
        # Names that lead to themselves, and records that are longer than the message.
        yield response(b"\xc0\x0c" + struct.pack("!HHIH", PTR, IN, 120, 2) + b"\xc0\x0c")
        yield response(record(SERVICE, PTR, b"\xc0\x0c", count=60000), count=65535)
        yield struct.pack("!6H", 0, 0x8400, 65535, 65535, 65535, 65535) + SERVICE * 50
        yield chance.randbytes(chance.randrange(1, 1400))
        yield response() + chance.randbytes(1300)
        yield query()
        if n % 50 == 0:
            yield bytes(9400)


def forge(address, name, key, port):
    sockets = [open_socket(ip) for ip in addresses()]
    print("ready", flush=True)
    while True:
        for sock in sockets:
            sock.sendto(announcement(name, key, int(port), address), (GROUP, PORT))
        time.sleep(0.2)


def flood(seconds):
    sockets = [open_socket(ip) for ip in addresses()]
    end, sent, chance = time.monotonic() + float(seconds), 0, random.Random(7)
    print("ready", flush=True)
    for number, datagram in enumerate(harmful(chance)):
        for sock in sockets:
            try:
                sock.sendto(datagram, (GROUP, PORT))
                sent += 1
            except OSError:
                pass
        if time.monotonic() > end:
            break
        # About 2000 a second on each link.
        if number % 20 == 0:
            time.sleep(0.01)
    print(f"sent {sent}", flush=True)


def goodbye():
    sockets = [open_socket(ip) for ip in addresses()]
    print("ready", flush=True)
    gone = SERVICE + struct.pack("!HHI", PTR, IN, 0)
    while True:
        for sock in sockets:
            sock.settimeout(0.1)
            try:
                datagram = sock.recv(9000)
            except TimeoutError:
                continue
            if gone in datagram:
                print("goodbye", flush=True)
                return


if __name__ == "__main__":
    os.nice(5)
    {"forge": forge, "flood": flood, "goodbye": goodbye}[sys.argv[1]](*sys.argv[2:])
