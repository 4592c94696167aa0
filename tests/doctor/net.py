"""A host with two uplinks, a router for each, and a destination behind both."""

import json
import os
import subprocess
import sys
from pathlib import Path

from failure import Failed
from namespaces import sh

DEST, DEST6 = "10.99.0.1", "fd99::1"
PORT = 9899
TIMES = Path(__file__).resolve().parent / "servers.py"


class Net:
    """The hosts of a case: `a` has eth0 and eth1, `r0` and `r1` are their routers, `z` is the destination.

    Routes by source are set up, so that it is sound. With `v6` all of it has IPv6 as well.
    """

    def __init__(self, lab, binary, v6=False):
        self.lab, self.binary, self.v6 = lab, binary, v6
        self.a, self.r0, self.r1, self.z = (lab.host(name) for name in ("a", "r0", "r1", "z"))
        for host in (self.a, self.r0, self.r1, self.z):
            # Before there are interfaces: they begin with these values.
            self.sysctl(host, {"net.ipv4.conf.all.rp_filter": 0, "net.ipv4.conf.default.rp_filter": 0,
                               "net.ipv6.conf.default.accept_dad": 0, "net.ipv6.conf.default.disable_ipv6": 0,
                               "net.ipv6.conf.all.disable_ipv6": 0, "net.ipv6.conf.default.accept_ra": 1})
        for router in (self.r0, self.r1):
            self.sysctl(router, {"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1})
        self.ip(self.z, f"address add {DEST}/32 dev lo", f"-6 address add {DEST6}/128 dev lo nodad")
        for number, router in enumerate((self.r0, self.r1)):
            own, far = number + 1, number + 8
            lab.veth(self.a, f"eth{number}", f"10.{own}.0.2/24", router, "in0", f"10.{own}.0.1/24")
            lab.veth(router, "out0", f"10.{far}.0.1/24", self.z, f"z{number}", f"10.{far}.0.2/24")
            self.ip(router, f"route add {DEST} via 10.{far}.0.2")
            self.ip(self.z, f"route add 10.{own}.0.0/24 via 10.{far}.0.1")
            self.ip(self.a, f"route add default via 10.{own}.0.1 dev eth{number} table {101 + number}",
                    f"rule add from 10.{own}.0.2 lookup {101 + number} priority {101 + number}")
            # Of veth it is off at first, unlike of devices.
            self.run(self.a, f"ethtool -K eth{number} gro on")
            if v6:
                self.ip(router, f"-6 address add fd0{own}::1/64 dev in0 nodad",
                        f"-6 address add fd0{far}::1/64 dev out0 nodad")
                self.ip(self.z, f"-6 address add fd0{far}::2/64 dev z{number} nodad",
                        f"-6 route add fd0{own}::/64 via fd0{far}::1")
                self.ip(router, f"-6 route add {DEST6} via fd0{far}::2")
        self.ip(self.a, "route add default via 10.1.0.1 dev eth0")

    def with_v6_uplinks(self):
        """Gives both uplinks IPv6 addresses and routes by source."""
        for number in range(2):
            own = number + 1
            self.ip(self.a, f"-6 address add fd0{own}::2/64 dev eth{number} nodad",
                    f"-6 route add default via fd0{own}::1 dev eth{number} table {101 + number}",
                    f"-6 rule add from fd0{own}::2 lookup {101 + number} priority {101 + number}")
        self.ip(self.a, "-6 route add default via fd01::1 dev eth0")

    def serve(self, port=PORT):
        """Starts what the destination runs."""
        listen = f"{DEST},{DEST6}" if self.v6 else DEST
        server = self.lab.spawn(self.z, [self.binary, "perf", "server", "--listen", listen, "--port", str(port), "--json"])
        server.wait_line("listening", 10)
        return server

    def relay(self, address=DEST):
        """Starts a relay at the destination, at another address if one is named; the address."""
        if address != DEST:
            self.ip(self.z, f"address add {address}/32 dev lo")
            for router, far in ((self.r0, 8), (self.r1, 9)):
                self.ip(router, f"route add {address} via 10.{far}.0.2")
        relay = self.lab.spawn(self.z, [self.binary, "relay", "--listen", address, "--json"])
        if relay.event("listening", 10)["stun_port"] != 3479:
            raise Failed(f"the relay has no second port: {relay.said()}")
        return address

    def tell_time(self, ahead=0):
        """Starts a time server at the destination whose clock is `ahead` by so many seconds."""
        server = self.lab.spawn(self.z, [sys.executable, str(TIMES), "time", DEST, str(ahead)])
        server.wait_line("ready", 10)
        return server

    def advertise(self):
        """Lets the router of eth0 offer IPv6."""
        self.lab.spawn(self.r0, [sys.executable, str(TIMES), "router", "in0", "fd01::"]).wait_line("ready", 10)

    def sysctl(self, host, values):
        """Sets kernel settings; those that the kernel lacks are left out."""
        lines = [f"[ ! -e /proc/sys/{key.replace('.', '/')} ] || echo {value} > /proc/sys/{key.replace('.', '/')}"
                 for key, value in values.items()]
        self.run(host, "; ".join(lines))

    def ip(self, host, *commands):
        """Runs commands of `ip`."""
        for command in commands:
            sh("ip", "-n", host, *command.split())

    def run(self, host, command, path=None):
        """Runs a command line as somebody who pastes it."""
        environment = dict(os.environ, LC_ALL="C")
        if path:
            environment["PATH"] = f"{path}:{environment['PATH']}"
        done = subprocess.run(["ip", "netns", "exec", host, "sh", "-ec", command], capture_output=True, text=True,
                              timeout=30, env=environment, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failed(f"{command}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def nft(self, host, rules):
        """Loads rules of nftables, in one line or several."""
        # The nft of Debian 12 wants a line of its own for each closing brace.
        rules = rules.replace("}", "\n}\n")
        done = subprocess.run(["ip", "netns", "exec", host, "nft", "-f", "-"], input=rules, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"nft: {done.stderr.strip()}")

    def perf(self, *words, port=PORT):
        """Runs `perf client` on `a`: its report."""
        command = ["ip", "netns", "exec", self.a, self.binary, "perf", "client", f"{DEST}:{port}", "--json",
                   "--quiet", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout.splitlines()[-1])

    def doctor(self, *words, dest=None, prefix=()):
        """Runs the doctor on `a`: exit code and report."""
        self.lab.settle(self.a)
        command = ["ip", "netns", "exec", self.a, *prefix, self.binary, "doctor", "--json", "--quiet",
                   *(words or ("--time-server", DEST))]
        # An empty one is none.
        if dest != "":
            command.append(dest or (f"{DEST},{DEST6}" if self.v6 else DEST))
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            raise Failed(f"exit code {done.returncode}: {done.stderr.strip()}") from None
