#!/usr/bin/env python3
"""A bulk transfer by the kernel's MPTCP, or by TCP: the peer that bench/paths/run.py runs beside
manypath.

    tcp.py server PORT OUT                      accepts one connection, reads it to its end, writes the result
    tcp.py client ADDRESS PORT SECONDS CONTROL  connects, sends for so long, waits until everything was read
    tcp.py client ... CONTROL RATE              sends messages of 1 kB at this rate in bit/s, prints their latency
    tcp.py --tcp server|client ...              the same by TCP

CONTROL is the congestion control. It is set for the socket, and so for every subflow: the default
of a network namespace (net.ipv4.tcp_congestion_control) can only be one of those that
net.ipv4.tcp_allowed_congestion_control has.

The latency is measured as `manypath perf client --rate` does: from the time at which a message is
due to the time at which the kernel says that everything up to its end is acknowledged (SIOCOUTQ),
which is looked up every 5 ms.

OUT gets a JSON object as the contract in README.md says. It is also written at SIGTERM, for a
transfer that stalls.
"""
import collections
import fcntl
import json
import math
import os
import signal
import socket
import struct
import sys
import termios
import time

# Python names it since 3.10, where the C library does.
IPPROTO_MPTCP = 262
BLOCK = 1 << 16
MESSAGE = 1000
# As in manypath.
LOOK_S = 0.005


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


def send(own, address, port, seconds, control, rate=None):
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    own.connect((address, int(port)))
    if rate is None:
        send_all(own, float(seconds))
    else:
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        latencies = sorted(send_messages(own, float(seconds), float(rate)))
        # Nearest rank.
        rank = math.ceil(0.99 * len(latencies))
        print(json.dumps({"messages": len(latencies), "message_latency_p99_s": latencies[rank - 1] if latencies else None}))
    own.shutdown(socket.SHUT_WR)
    own.settimeout(None)
    own.recv(1)


def send_all(own, seconds):
    data, end = bytes(BLOCK), time.monotonic() + seconds
    own.settimeout(1)
    while time.monotonic() < end:
        try:
            own.send(data)
        except TimeoutError:
            # No room for a second; it may come.
            pass


def unacknowledged(own):
    """Bytes of the send queue that the peer has not acknowledged; of MPTCP by its own sequence
    numbers.
    """
    # The same number as TIOCOUTQ.
    return struct.unpack("i", fcntl.ioctl(own, termios.TIOCOUTQ, bytes(4)))[0]


def send_messages(own, seconds, rate):
    """Sends messages of 1 kB at a rate; the latencies until each was acknowledged."""
    begin, sent, waiting, latencies = time.monotonic(), 0, collections.deque(), []
    next_look, rest, data = begin + LOOK_S, 0, bytes(MESSAGE)
    own.setblocking(False)
    while (now := time.monotonic()) < begin + seconds or waiting:
        due = begin + sent * 8 / rate
        if now >= next_look:
            acknowledged = sent - unacknowledged(own)
            while waiting and waiting[0][0] <= acknowledged:
                latencies.append(now - waiting.popleft()[1])
            next_look = max(next_look + LOOK_S, now)
        elif rest or due <= now < begin + seconds:
            if not rest:
                rest = MESSAGE
                waiting.append((sent + MESSAGE, due))
            try:
                count = own.send(data[:rest])
            except BlockingIOError:
                # The message waits in the application; its latency counts on.
                count = 0
                time.sleep(max(0.0, next_look - time.monotonic()))
            sent += count
            rest -= count
        else:
            time.sleep(max(0.0, min(next_look, due) - time.monotonic()))
    return latencies


def main():
    words = sys.argv[1:]
    is_tcp = words[:1] == ["--tcp"]
    words = words[is_tcp:]
    own = open_socket(is_tcp)
    {"server": serve, "client": send}[words[0]](own, *words[1:])


if __name__ == "__main__":
    main()
