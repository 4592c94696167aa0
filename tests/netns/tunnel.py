#!/usr/bin/env python3
"""One end of a tunnel over UDP: `tunnel.py DEVICE LOCAL:PORT REMOTE:PORT [MARK]`. Makes the TUN device in the
namespace in which it runs. What it sends itself has the mark, so that rules can keep it out of the tunnel."""

import fcntl
import os
import select
import signal
import socket
import struct
import sys

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
SO_MARK = 36
PACKETS = 64  # taken from one side before the other has its turn


def place(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def main():
    device, local, remote, *mark = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setblocking(False)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        udp.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
    if mark and mark[0] != "0":
        udp.setsockopt(socket.SOL_SOCKET, SO_MARK, int(mark[0]))
    udp.bind(place(local))
    far = place(remote)
    print("ready", flush=True)
    while True:
        for side in select.select([tun, udp], [], [])[0]:
            for _ in range(PACKETS):
                try:
                    if side is udp:
                        os.write(tun, udp.recv(65536))
                    else:
                        udp.sendto(os.read(tun, 65536), far)
                except BlockingIOError:
                    break
                except OSError:
                    continue  # the device is down, or a packet is no IP packet, as of a network that only comes up


if __name__ == "__main__":
    main()
