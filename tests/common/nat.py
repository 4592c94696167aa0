"""Routers that translate addresses, by nftables."""

import json
import shutil
import subprocess

from failure import Failed, Unavailable
from namespaces import sh

LAN, WAN = "lan0", "wan0"
# Kinds of NAT: mapping and filtering, as of NatRouter.translate.
SYMMETRIC = ("symmetric", "port")
CONES = (("independent", "independent"), ("independent", "address"), ("independent", "port"))


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


def check_miniupnpd():
    """Raises Unavailable unless a router can map ports."""
    if shutil.which("miniupnpd") is None:
        raise Unavailable("needs the command 'miniupnpd' (Debian: miniupnpd-nftables)")


def map_ports(lab, host, inside, outside, network, external=None, pcp=True):
    """Starts `miniupnpd` in a router: hosts of `network`, behind its device `inside`, get ports of its device `outside`
    by UPnP IGD, and with `pcp` also by PCP and NAT-PMP. It maps none if its address is one that it knows to be of
    documentation or tests, unless `external` is named in its place."""
    # Chains of its own: it fills them.
    nft(host, """
        table inet mapped {
            chain forward {
                type filter hook forward priority 0;
                jump miniupnpd;
            }
            chain miniupnpd {
            }
            chain prerouting {
                type nat hook prerouting priority -100;
                jump prerouting_miniupnpd;
            }
            chain prerouting_miniupnpd {
            }
            chain postrouting {
                type nat hook postrouting priority 90;
                jump postrouting_miniupnpd;
            }
            chain postrouting_miniupnpd {
            }
        }""")
    config = lab.dir / f"{host}.conf"
    lines = [
        f"ext_ifname={outside}", *([f"ext_ip={external}"] if external else []), f"listening_ip={inside}", "port=5000",
        f"enable_natpmp={'yes' if pcp else 'no'}", "enable_upnp=yes", "secure_mode=yes",
        "upnp_table_name=mapped", "upnp_nat_table_name=mapped", "upnp_forward_chain=miniupnpd",
        "upnp_nat_chain=prerouting_miniupnpd", "upnp_nat_postrouting_chain=postrouting_miniupnpd",
        "uuid=12345678-1234-1234-1234-123456789abc", f"allow 1024-65535 {network} 1024-65535", "deny 0-65535 0.0.0.0/0 0-65535"]
    config.write_text("\n".join(lines) + "\n", encoding="ascii")
    return lab.spawn(host, ["miniupnpd", "-d", "-f", str(config), "-P", str(lab.dir / f"{host}.pid")])


def speak_v6(host, is_router=False):
    """Gives a host IPv6; before its devices are made, as they begin with what is set here."""
    values = {"conf/all/disable_ipv6": 0, "conf/default/disable_ipv6": 0, "conf/default/accept_dad": 0,
              "conf/all/forwarding": int(is_router)}
    script = "; ".join(f"echo {value} > /proc/sys/net/ipv6/{name}" for name, value in values.items())
    sh("ip", "netns", "exec", host, "sh", "-ec", script)


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

    def map_ports(self, pcp=True):
        """Forwards ports to the host when it asks, see the function of this name."""
        map_ports(self.lab, self.host, LAN, WAN, f"{self.inside}/32", pcp=pcp)

    def guard_v6(self):
        """Lets in IPv6 only in answer to what the host has sent, as home routers do (RFC 6092)."""
        nft(self.host, f"""
            table ip6 guard {{
                chain passing {{
                    type filter hook forward priority 0;
                    iifname {WAN} ct state new drop;
                }}
            }}""")

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
    Internet. Every way into the Internet is shaped to `rate`, and takes `delay_ms`, for which a program runs unless that
    is 0. With `v6` all have IPv6 as well: the routers of the homes do not translate it, and let in only answers. With
    `carrier`, the mapping and the filtering of it, the receiver's router is behind a NAT of its carrier."""

    DELAY_MS, RATE = 10, "100mbit"
    NET, NET_V6 = "198.18", "2001:db8:1"
    PUBLIC = ("198.18.0.0/15", "203.0.0.0/16", "2001:db8::/32")

    def __init__(self, lab, sender=SYMMETRIC, receiver=SYMMETRIC, v6=False, net=NET, rate=RATE, delay_ms=DELAY_MS,
                 carrier=None):
        """`sender` and `receiver` are the mapping and the filtering of their NATs, `net` the first two bytes of all public
        addresses."""
        check_nft()
        self.lab, self.v6, self.net, self.rate, self.delay_ms = lab, v6, net, rate, delay_ms
        self.internet = self._host("internet", is_router=True)
        lab.forward(self.internet)
        self.sender, self.sender_nat = self._home("sender", 1, *sender)
        self.receiver, self.receiver_nat = self._home("receiver", 2, *receiver, carrier=carrier)

    def _host(self, name, is_router=False):
        host = self.lab.host(name)
        if self.v6:
            speak_v6(host, is_router)
        return host

    def _home(self, name, number, mapping, filtering, carrier=None):
        """A host and its router."""
        lan = f"192.168.{number}"
        host, router = self._host(name), NatRouter(self.lab, f"{name}-nat", f"{lan}.2")
        if self.v6:
            speak_v6(router.host, is_router=True)
        self.lab.veth(host, "eth0", f"{lan}.2/24", router.host, LAN, f"{lan}.1/24")
        self.lab.route(host, "default", "via", f"{lan}.1")
        if carrier is None:
            self._joins(router.host, WAN, number)
        else:
            self._joins_carrier(router, number, *carrier)
        router.translate(mapping, filtering)
        if self.v6:
            inside = f"2001:db8:0:{number}"
            self._join_v6(router.host, LAN, f"{inside}::1", host, "eth0", f"{inside}::2")
            self.lab.route(self.internet, f"{inside}::/64", "via", f"{self.NET_V6}:{number}::2")
            router.guard_v6()
        return host, router

    def _joins_carrier(self, router, number, mapping, filtering):
        """A way for a router into the Internet through its carrier's NAT (RFC 6598)."""
        lan = f"100.64.{number}"
        carrier = NatRouter(self.lab, f"{router.name}-carrier", f"{lan}.2")
        self.lab.veth(router.host, WAN, f"{lan}.2/24", carrier.host, LAN, f"{lan}.1/24")
        self.lab.route(router.host, "default", "via", f"{lan}.1")
        self._joins(carrier.host, WAN, number)
        carrier.translate(mapping, filtering)

    def _joins(self, host, dev, number):
        """A way into the Internet; the address that it gives."""
        there, address = f"{self.net}.{number}.1", f"{self.net}.{number}.2"
        ends = (self.internet, f"i{number}", f"{there}/24", host, dev, f"{address}/24", self.rate)
        if self.delay_ms:
            self.lab.wire(*ends, "--delay-ms", str(self.delay_ms))
        else:
            self.lab.veth(*ends)
        self.lab.route(host, "default", "via", there)
        if self.v6:
            self._join_v6(self.internet, f"i{number}", f"{self.NET_V6}:{number}::1", host, dev, f"{self.NET_V6}:{number}::2")
        return address

    def _join_v6(self, router, router_dev, there, host, dev, address):
        """Gives both ends of a link IPv6, and the host its route."""
        for end, end_dev, own in ((router, router_dev, there), (host, dev, address)):
            sh("ip", "-n", end, "addr", "add", f"{own}/64", "dev", end_dev, "nodad")
        self.lab.route(host, "default", "via", there)

    def public(self, name, number):
        """A host that everybody reaches, and its address; the number is above 10."""
        host = self._host(name)
        return host, self._joins(host, "eth0", number)

    def public_v6(self, number):
        """The address of IPv6 of that host."""
        return f"{self.NET_V6}:{number}::2"
