#!/usr/bin/env python3
"""A bulk transfer by the kernel's MPTCP, or by TCP: the peer that bench/paths/run.py runs beside manypath.

    tcp.py server PORT OUT                      accepts one connection, reads it to its end, writes the result
    tcp.py client ADDRESS PORT SECONDS CONTROL  connects, sends for so long, waits until everything was read
    tcp.py --tcp server|client ...              the same by TCP

CONTROL is the congestion control. It is set for the socket, and so for every subflow: the default of a network namespace
(net.ipv4.tcp_congestion_control) can only be one of those that net.ipv4.tcp_allowed_congestion_control has.

OUT gets a JSON object as the contract in README.md says. It is also written at SIGTERM, for a transfer that stalls.
"""
import json
import os
import signal
import socket
import sys
import time

# Python names it since 3.10, where the C library does.
IPPROTO_MPTCP = 262
BLOCK = 1 << 16


def open_socket(is_tcp):
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP if is_tcp else IPPROTO_MPTCP)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return own


def serve(own, port, out):
    own.bind(("0.0.0.0", int(port)))
    own.listen()
    seen = {"bytes": 0, "seconds": 0.0, "max_delivery_gap_s": 0.0}

    def write(*_):
        with open(out, "w", encoding="utf-8") as file:
            json.dump(seen, file)

    def stopped(*_):
        write()
        os._exit(0)
    signal.signal(signal.SIGTERM, stopped)
    connection, _ = own.accept()
    begin, last, buffer = time.monotonic(), None, bytearray(1 << 20)
    while count := connection.recv_into(buffer):
        now = time.monotonic()
        if last is not None:
            seen["max_delivery_gap_s"] = max(seen["max_delivery_gap_s"], now - last)
        last = now
        seen["bytes"] += count
        seen["seconds"] = now - begin
    write()
    # The client has waited for this.
    connection.close()


def send(own, address, port, seconds, control):
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    own.connect((address, int(port)))
    data, end = bytes(BLOCK), time.monotonic() + float(seconds)
    own.settimeout(1)
    while time.monotonic() < end:
        try:
            own.send(data)
        except TimeoutError:
            # No room for a second; it may come.
            pass
    own.shutdown(socket.SHUT_WR)
    own.settimeout(None)
    own.recv(1)


def main():
    words = sys.argv[1:]
    is_tcp = words[:1] == ["--tcp"]
    words = words[is_tcp:]
    own = open_socket(is_tcp)
    {"server": serve, "client": send}[words[0]](own, *words[1:])


if __name__ == "__main__":
    main()
