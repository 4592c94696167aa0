#!/usr/bin/env python3
"""The other end by the Python package zeroconf, an implementation of multicast DNS that is not ours.

    zeroconf_peer.py find                         prints the first receiver that it finds, as JSON
    zeroconf_peer.py announce NAME KEY ADDRESS    announces a receiver, until it is stopped
"""

import json
import socket
import sys
import time

from zeroconf import InterfaceChoice, IPVersion, ServiceBrowser, ServiceInfo, Zeroconf

SERVICE = "_manypath._udp.local."


class Finder:
    """Prints the first receiver."""

    def __init__(self):
        self.found = None

    def add_service(self, zeroconf, kind, name):
        info = zeroconf.get_service_info(kind, name, 3000)
        if info is not None and self.found is None:
            self.found = {
                "instance": info.name,
                "server": info.server,
                "port": info.port,
                "addresses": sorted(info.parsed_addresses()),
                "text": {key.decode(): value.decode() for key, value in info.properties.items()},
            }

    def update_service(self, *_):
        pass

    def remove_service(self, *_):
        pass


def find(zeroconf):
    finder = Finder()
    ServiceBrowser(zeroconf, SERVICE, finder)
    until = time.monotonic() + 10
    while finder.found is None and time.monotonic() < until:
        time.sleep(0.05)
    print(json.dumps(finder.found), flush=True)


def announce(zeroconf, name, key, address):
    digits = key.removeprefix("sha256:")[:16]
    info = ServiceInfo(SERVICE, f"{name}-{digits}.{SERVICE}", port=9899, server=f"manypath-{digits}.local.",
                       addresses=[socket.inet_aton(address)],
                       properties={"v": "1", "name": name, "auth": "token", "key": key})
    zeroconf.register_service(info)
    print("ready", flush=True)
    time.sleep(60)


if __name__ == "__main__":
    instance = Zeroconf(interfaces=InterfaceChoice.All, ip_version=IPVersion.V4Only)
    {"find": find, "announce": announce}[sys.argv[1]](instance, *sys.argv[2:])
    instance.close()
