#!/usr/bin/env python3
"""A flow of the kernel's TCP beside what is tested.

    tcp.py receive ADDRESS PORT            prints "listening", then every 50 ms the time and the bytes received, as JSON
    tcp.py send ADDRESS PORT [CONTROL]     sends until it is killed; CONTROL is a congestion control [default: cubic]
"""

import json
import socket
import sys
import time

EVERY = 0.05  # seconds between two lines


def receive(address, port):
    """Takes one connection and counts."""
    with socket.create_server((address, port)) as server:
        print("listening", flush=True)
        connection, _ = server.accept()
        buffer, total, due = bytearray(1 << 18), 0, 0.0
        while count := connection.recv_into(buffer):
            total += count
            now = time.monotonic()
            if now >= due:
                print(json.dumps({"at": now, "bytes": total}), flush=True)
                due = now + EVERY


def send(address, port, control="cubic"):
    """Sends as much as it may."""
    with socket.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        connection.connect((address, port))
        block = bytes(1 << 16)
        while True:
            connection.sendall(block)


if __name__ == "__main__":
    what, host, number, *more = sys.argv[1:]
    {"receive": receive, "send": send}[what](host, int(number), *more)
