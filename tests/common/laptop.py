"""A laptop with several uplinks, and a server that it reaches through all of them."""

import ipaddress

from namespaces import sh

SERVER, SERVER6 = "203.0.113.9", "fd00:9::9"
# Mbit/s of the laptop's uplinks, as tbf counts them.
RATES = {"wlan0": 80, "lte0": 30}
SUM = sum(RATES.values()) * 1e6
# Of that sum.
GOODPUT_MIN = 0.9


class Uplink:
    """An uplink of the laptop and the router behind it."""

    def __init__(self, dev, number, metric):
        self.dev, self.number, self.metric, self.gate = dev, number, metric, None

    def address(self, host, v6=False):
        """The address of the laptop (2) or its router (1)."""
        return f"fd00:{self.number}::{host}" if v6 else f"192.168.{self.number}.{host}"


class Laptop:
    """A laptop whose uplinks have a router each, and a server behind them with one address. There is no policy
    routing; the uplinks' default routes have the metrics that NetworkManager gives Wi-Fi and LTE."""

    def __init__(self, lab, uplinks=RATES, v6=False, rp_filter=0):
        self.lab, self.v6 = lab, v6
        self.laptop, self.core, self.server = (lab.host(name) for name in ("laptop", "core", "server"))
        self.uplinks = [Uplink(dev, number, metric) for dev, number, metric in (("wlan0", 1, 100), ("lte0", 2, 600))
                        if dev in uplinks]
        for name in ("all", "default"):
            self.sysctl(self.laptop, f"ipv4.conf.{name}.rp_filter", rp_filter)
        self.router(self.core)
        self.link(self.core, "c0", "203.0.113.1/24", self.server, "eth0", f"{SERVER}/24")
        self.give6(self.core, "c0", "fd00:9::1", self.server, "eth0", SERVER6)
        lab.route(self.server, "default", "via", "203.0.113.1")
        self.route6(self.server, "default", "via", "fd00:9::1")
        # Like the Internet, it says nothing of addresses that it does not know.
        lab.route(self.core, "blackhole", "default")
        for uplink in self.uplinks:
            self.connect(uplink)

    def connect(self, uplink):
        """An uplink and its router."""
        gate = uplink.gate = self.lab.host(f"gate{uplink.number}")
        self.router(gate)
        near, far = uplink.address(2), uplink.address(1)
        self.link(self.laptop, uplink.dev, f"{near}/24", gate, "lan", f"{far}/24", f"{RATES[uplink.dev]}mbit")
        self.link(gate, "wan", f"10.70.{uplink.number}.1/30", self.core, f"c{uplink.number}", f"10.70.{uplink.number}.2/30")
        self.give6(self.laptop, uplink.dev, uplink.address(2, True), gate, "lan", uplink.address(1, True))
        self.give6(gate, "wan", f"fd00:7{uplink.number}::1", self.core, f"c{uplink.number}", f"fd00:7{uplink.number}::2")
        for route, words in ((self.lab.route, (far, f"10.70.{uplink.number}.2", f"192.168.{uplink.number}.0/24",
                                               f"10.70.{uplink.number}.1")),
                             (self.route6, (uplink.address(1, True), f"fd00:7{uplink.number}::2",
                                            f"fd00:{uplink.number}::/64", f"fd00:7{uplink.number}::1"))):
            router, core, net, back = words
            route(self.laptop, "default", "via", router, "dev", uplink.dev, "metric", str(uplink.metric))
            route(gate, "default", "via", core)
            route(self.core, net, "via", back)

    def sysctl(self, host, name, value):
        """Sets a value below /proc/sys/net in a host."""
        path = "/proc/sys/net/" + name.replace(".", "/")
        sh("ip", "netns", "exec", host, "sh", "-c", f"echo {value} > {path}")

    def router(self, host):
        """Makes a host a router."""
        self.lab.forward(host)
        if self.v6:
            self.sysctl(host, "ipv6.conf.all.forwarding", 1)

    def link(self, left, left_dev, left_ip, right, right_dev, right_ip, rate=None):
        """A link, shaped to `rate` each way."""
        self.lab.veth(left, left_dev, left_ip, right, right_dev, right_ip, rate)

    def give6(self, left, left_dev, left_ip, right, right_dev, right_ip):
        """Gives both ends of a link an IPv6 address, if the case has IPv6."""
        for host, dev, ip in ((left, left_dev, left_ip), (right, right_dev, right_ip)) if self.v6 else ():
            sh("ip", "-n", host, "-6", "addr", "add", f"{ip}/64", "dev", dev, "nodad")

    def route6(self, host, *words):
        """Adds a route by IPv6, if the case has IPv6."""
        if self.v6:
            sh("ip", "-n", host, "-6", "route", "add", *words)

    def second_address(self, dev, address):
        """Another interface of the server, whose network nobody else reaches."""
        other = self.lab.host(f"lan-{dev}")
        self.link(self.server, dev, address, other, "lan", f"{ipaddress.ip_interface(address).ip + 1}/24")

    def bridge(self):
        """A bridge at the server as Docker makes it, with a container."""
        sh("ip", "-n", self.server, "link", "add", "name", "docker0", "type", "bridge")
        self.lab.configure(self.server, "docker0", "172.17.0.1/16")
        container = self.lab.host("container")
        sh("ip", "link", "add", "name", "veth0", "netns", self.server, "type", "veth",
           "peer", "name", "eth0", "netns", container)
        sh("ip", "-n", self.server, "link", "set", "veth0", "master", "docker0", "up")
        self.lab.configure(container, "eth0", "172.17.0.2/16")
