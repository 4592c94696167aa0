"""Captures of what a relay saw, for tshark and for manypath decrypt."""

import socket
import struct

from relay import TO_RECEIVER

LINKTYPE_RAW = 101
PORT = 9899  # tshark looks for SCTP there


def write_pcap(path, datagrams):
    """A capture of UDP datagrams between two hosts, pairs of a direction and the data."""
    addresses = [socket.inet_aton("192.0.2.1"), socket.inet_aton("192.0.2.2")]
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2_C3D4, 2, 4, 0, 0, 262144, LINKTYPE_RAW))
        for number, (direction, data) in enumerate(datagrams):
            ends = addresses if direction == TO_RECEIVER else addresses[::-1]
            packet = struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(data), 0, 0, 64, socket.IPPROTO_UDP, 0) + b"".join(ends)
            packet += struct.pack("!HHHH", PORT, PORT, 8 + len(data), 0) + data
            file.write(struct.pack("<IIII", number // 1000, number % 1000, len(packet), len(packet)) + packet)
