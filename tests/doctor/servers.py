#!/usr/bin/env python3
"""Small servers of the tests: `time ADDRESS AHEAD` (SNTP), `router INTERFACE PREFIX` (router advertisements)."""

import socket
import struct
import sys
import time

ERA = 2_208_988_800  # seconds from 1900 to 1970


def tell_time(address, ahead):
    """Answers every request with the time `ahead` of this machine's."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 123))
    print("ready", flush=True)
    while True:
        request, client = server.recvfrom(200)
        if len(request) < 48:
            continue
        now = time.time() + ERA + ahead
        stamp = struct.pack("!II", int(now) & 0xFFFFFFFF, int(now % 1 * 2**32))
        answer = struct.pack("!BBbb", 0x24, 2, 6, -20) + bytes(20) + request[40:48] + stamp + stamp
        server.sendto(answer, client)


def advertise(interface, prefix):
    """Sends router advertisements (RFC 4861) five times a second."""
    router = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    index = socket.if_nametoindex(interface)
    router.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
    router.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    # Current hop limit 64, lifetime 1800 s; a prefix for addresses of hosts. The kernel writes the checksum.
    message = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0)
    message += struct.pack("!BBBBIII16s", 3, 4, 64, 0xC0, 3600, 3600, 0, socket.inet_pton(socket.AF_INET6, prefix))
    print("ready", flush=True)
    while True:
        try:
            router.sendto(message, ("ff02::1", 0, 0, index))
        except OSError:
            pass  # its address is not ready yet
        time.sleep(0.2)


if __name__ == "__main__":
    if sys.argv[1] == "time":
        tell_time(sys.argv[2], float(sys.argv[3]))
    advertise(sys.argv[2], sys.argv[3])
