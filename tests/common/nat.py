"""Routers that translate addresses, by nftables."""

import json
import shutil
import subprocess

from failure import Failed, Unavailable
from namespaces import sh

LAN, WAN = "lan0", "wan0"


def check_nft():
    """Raises Unavailable unless nftables can be used."""
    if shutil.which("nft") is None:
        raise Unavailable("needs the command 'nft' (Debian: nftables)")


def nft(host, rules):
    """Loads rules of nftables in a host. The nft of Debian 12 wants a line of its own for the end of each block."""
    done = subprocess.run(["ip", "netns", "exec", host, "nft", "-f", "-"], input=rules, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise Failed(f"nft: {done.stderr.strip()}")


class NatRouter:
    """A router between a private network and the rest, in the words of RFC 4787. One host is behind it.

    Its device lan0 leads to the host, wan0 to the rest. `mapping` says which public port a socket of the host has:

    - "independent": one port for all destinations, its own if that is free
    - "symmetric": a random port for each destination

    `filtering` says whose packets come in to such a port:

    - "independent": everybody's, once the host has sent anything
    - "address": those of addresses that the host has sent to
    - "port": those of addresses and ports that the host has sent to
    """

    def __init__(self, lab, name, inside):
        """`inside` is the host's address in its network."""
        self.lab, self.name, self.inside, self.host = lab, name, inside, lab.host(name)
        lab.forward(self.host)

    def restart(self):
        """Forgets all bindings, as a router does that is switched off and on: the kernel drops those of an address that
        goes, and hosts behind it get other ports."""
        [address] = [word["addr_info"][0] for word in json.loads(sh("ip", "-n", self.host, "-j", "-4", "addr", "show", "dev", WAN))]
        [route] = json.loads(sh("ip", "-n", self.host, "-j", "route", "show", "default"))
        place = f"{address['local']}/{address['prefixlen']}"
        sh("ip", "-n", self.host, "addr", "del", place, "dev", WAN)
        sh("ip", "-n", self.host, "addr", "add", place, "dev", WAN)
        sh("ip", "-n", self.host, "route", "replace", "default", "via", route["gateway"])

    def translate(self, mapping="independent", filtering="port"):
        """Begins to translate, in place of what it did before. Bindings of before stay."""
        if mapping == "symmetric" and filtering != "port":
            raise ValueError("a symmetric NAT of Linux filters by address and port")
        random = " fully-random" if mapping == "symmetric" else ""
        # Linux lets in only answers. So packets of others are sent to the host as if it had been forwarded a port, which
        # is right as long as mappings keep the port.
        let_in = {
            "independent": "ip saddr 0.0.0.0/0",
            "address": "ip saddr @spoken_to",
            "port": None,
        }[filtering]
        forwarding = f"iifname {WAN} ip protocol udp {let_in} dnat to {self.inside};" if let_in else ""
        nft(self.host, f"""
            table ip nat
            delete table ip nat
            table ip nat {{
                set spoken_to {{
                    type ipv4_addr;
                    flags dynamic, timeout;
                    timeout 120s;
                }}
                chain before {{
                    type nat hook prerouting priority -100;
                    {forwarding}
                }}
                chain after {{
                    type nat hook postrouting priority 100;
                    oifname {WAN} masquerade{random};
                }}
                chain passing {{
                    type filter hook forward priority 0;
                    oifname {WAN} update @spoken_to {{ ip daddr }};
                    iifname {WAN} ct state new ct status dnat accept;
                    iifname {WAN} ct state new drop;
                }}
                chain own {{
                    type filter hook input priority 0;
                    iifname {WAN} ip protocol udp drop;
                }}
            }}""")


class TwoHomes:
    """Two hosts, each in a private network behind a router that translates, and public hosts: all around a router of the
    Internet. Every way into the Internet is shaped, and takes `delay_ms`."""

    DELAY_MS, RATE = 10, "100mbit"
    PUBLIC = "198.18.0.0/15"

    def __init__(self, lab, mapping="symmetric", filtering="port"):
        check_nft()
        self.lab, self.internet = lab, lab.host("internet")
        lab.forward(self.internet)
        self.sender, self.sender_nat = self._home("sender", 1, mapping, filtering)
        self.receiver, self.receiver_nat = self._home("receiver", 2, mapping, filtering)

    def _home(self, name, number, mapping, filtering):
        """A host and its router."""
        lan = f"192.168.{number}"
        host, router = self.lab.host(name), NatRouter(self.lab, f"{name}-nat", f"{lan}.2")
        self.lab.veth(host, "eth0", f"{lan}.2/24", router.host, LAN, f"{lan}.1/24")
        self.lab.route(host, "default", "via", f"{lan}.1")
        self._joins(router.host, WAN, number)
        router.translate(mapping, filtering)
        return host, router

    def _joins(self, host, dev, number):
        """A way into the Internet; the address that it gives."""
        address = f"198.18.{number}.2"
        self.lab.wire(self.internet, f"i{number}", f"198.18.{number}.1/24", host, dev, f"{address}/24", self.RATE,
                      "--delay-ms", str(self.DELAY_MS))
        self.lab.route(host, "default", "via", f"198.18.{number}.1")
        return address

    def public(self, name, number):
        """A host that everybody reaches, and its address; the number is above 10."""
        host = self.lab.host(name)
        return host, self._joins(host, "eth0", number)
