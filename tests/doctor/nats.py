"""Kinds of NAT before a host, and what the doctor is to say of each.

All are rules of nftables in the router of eth1; `miniupnpd` maps ports in some.
"""

import json
import re

from failure import Failed
from nat import map_ports
from net import DEST

# A second relay, on another address of the destination.
OTHER = "10.99.0.2"
# The address of the router that peers elsewhere would see. `miniupnpd` takes none that is for documentation.
PUBLIC = "192.0.1.9"
NATS = {}


class Nat:
    """A case: `build` makes the NAT, `relays` are asked about it."""

    def __init__(self, build, finding, severity, words, mapping=None, filtering=None, relays=(DEST,), maps=None):
        self.build, self.relays = build, relays
        self.finding, self.severity, self.words = finding, severity, words
        self.mapping, self.filtering = mapping, filtering
        # The protocol by which the router maps ports, or "none".
        self.maps = maps

    def check(self, net, code, report):
        """Raises Failed unless the report is as it should be."""
        found = {finding["id"]: finding for finding in report["findings"]}
        finding = found.get(self.finding)
        if finding is None or finding["severity"] != self.severity or self.words not in finding["sentence"]:
            raise Failed(f"not {self.severity} {self.finding} ({self.words}): {json.dumps(report['findings'])}")
        expected = {"ok": 0, "note": 0, "warning": 10, "error": 11}[self.severity]
        if code != expected or any(f["severity"] in ("warning", "error") for f in found.values() if f is not finding):
            raise Failed(f"exit code {code}: {json.dumps(report['findings'])}")
        [uplink] = report["uplinks"]
        told = [uplink[key] for key in ("nat_mapping", "nat_filtering", "port_mapping")]
        if told != [self.mapping, self.filtering, self.maps]:
            raise Failed(f"told {told}")
        if self.severity in ("warning", "error") and not finding["mend_at_destination"]:
            raise Failed(f"nothing to do: {finding}")
        left = [line for line in net.run(net.r1, "nft list ruleset").splitlines() if re.search(r"dnat .*10\.2\.0\.2:", line)]
        if left:
            raise Failed(f"mappings are left: {left}")


def rules(text):
    """A NAT of these rules, each for what leaves or comes in at the far side."""
    return lambda net: net.nft(net.r1, text)


def postrouting(rule):
    return "table ip nat { chain c { type nat hook postrouting priority 100; oifname out0 %s; } }" % rule


STATEFUL = "table ip filter { chain f { type filter hook forward priority 0; iifname out0 ct state new drop; } }"
# Everything that comes in goes to the host, whoever sends it.
CONE = postrouting("masquerade") + (
    " table ip in { chain c { type nat hook prerouting priority -100; iifname out0 meta l4proto udp dnat to 10.2.0.2; } }")
# Only what comes from the first relay's address, at any port, goes to the host.
RESTRICTED = CONE.replace("meta l4proto udp", f"ip saddr {DEST} meta l4proto udp")
BLOCKED = "table ip filter { chain f { type filter hook forward priority 0; meta l4proto udp drop; } }"

PORTS, BOTH = "address-and-port-dependent", "port-independent"
ALL = "endpoint-independent"
NOT_ALL = "direct with most peers, but not with those whose NAT gives each destination another port"

NATS["behind-none"] = Nat(rules(""), "nat-none", "ok", "direct with all peers", BOTH, BOTH)
NATS["behind-none-two-relays"] = Nat(rules(""), "nat-none", "ok", "from everywhere", ALL, ALL, (DEST, OTHER))
NATS["behind-firewall"] = Nat(rules(STATEFUL), "nat-none", "ok", NOT_ALL, BOTH, PORTS)
NATS["behind-masquerade"] = Nat(rules(postrouting("masquerade")), "nat", "note", NOT_ALL, BOTH, PORTS, maps="none")
NATS["behind-masquerade-two-relays"] = Nat(
    rules(postrouting("masquerade")), "nat", "note", NOT_ALL, ALL, PORTS, (DEST, OTHER), maps="none")
NATS["behind-full-cone"] = Nat(
    rules(CONE), "nat", "note", "from everywhere come in", ALL, ALL, (DEST, OTHER), maps="none")
NATS["behind-restricted-cone"] = Nat(
    rules(RESTRICTED), "nat", "note", "direct with all peers", ALL, "address-dependent", (DEST, OTHER), maps="none")
NATS["behind-fully-random"] = Nat(
    rules(postrouting("masquerade fully-random")), "nat-symmetric", "warning", "direct only with peers", PORTS, PORTS,
    maps="none")
NATS["behind-udp-blocked"] = Nat(rules(BLOCKED), "udp-silent", "error", "UDP is blocked")


def miniupnpd(external, pcp):
    """A NAT that gives each destination another port, and a program that maps ports in it."""
    def build(net):
        net.nft(net.r1, postrouting("masquerade fully-random"))
        map_ports(net.lab, net.r1, "in0", "out0", "10.2.0.0/24", external, pcp)
    return build


NATS["behind-pcp"] = Nat(miniupnpd(PUBLIC, pcp=True), "nat-symmetric", "note", "PCP: direct with all peers", PORTS, PORTS,
                         maps="PCP")
NATS["behind-upnp"] = Nat(miniupnpd(PUBLIC, pcp=False), "nat-symmetric", "note", "UPnP IGD: direct with all peers", PORTS,
                          PORTS, maps="UPnP IGD")
