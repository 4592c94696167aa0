"""Set-ups that are broken in one way each, and the finding that names it.

A case breaks a sound set-up and yields what the doctor is to find. What follows its `yield` is done after the
commands of the finding were run, and before the doctor looks again. Where no command can mend it, the `yield` gives
the finding to the case, which shows that the advice is enough.
"""

import concurrent.futures
import re
import time
from pathlib import Path

from failure import Failed
from namespaces import sh
from net import DEST, DEST6, PORT

CASES = {}
LIMITS = [Path("/proc/sys/net/core", name) for name in ("rmem_max", "wmem_max")]
# As root, but without the right to exceed the limits of buffers.
PLAIN = ("setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin")


class Expected:
    """The finding of a case, and how the doctor is run."""

    def __init__(self, finding, severity, *words, dest=None, prefix=(), mends="here", by=None, place=None):
        self.finding, self.severity, self.place = finding, severity, place
        self.words, self.dest, self.prefix = words, dest, prefix
        # "here": the commands for this host; "there": those for the destination; "case": no command changes the
        # network, so the case itself gets the finding, and shows that what it advises is enough.
        self.mends = mends
        # Runs a command in another way than in the host's namespace.
        self.by = by


def case(v6=False):
    """Registers a case by the name of its function."""
    def register(body):
        CASES[body.__name__.replace("_", "-")] = (body, v6)
        return body
    return register


def two_metrics(net):
    """Routes by metric in the main table, no rules: what a host has when nobody cares."""
    net.ip(net.a, "rule del from 10.1.0.2 lookup 101", "rule del from 10.2.0.2 lookup 102",
           "route flush table 101", "route flush table 102",
           "route add default via 10.2.0.1 dev eth1 metric 200")


@case()
def no_route(net):
    net.ip(net.a, "route flush table 102", "rule del from 10.2.0.2 lookup 102")
    net.serve()
    yield Expected("no-route", "error", place="eth1")


@case()
def empty_table(net):
    net.ip(net.a, "route flush table 102")
    net.serve()
    yield Expected("no-route", "error", place="eth1")


@case()
def no_source_route(net):
    two_metrics(net)
    # The first provider takes packets from its own addresses only.
    net.nft(net.r0, "table ip f { chain c { type filter hook forward priority 0; iifname in0 ip saddr != 10.1.0.0/24 drop; } }")
    net.serve()
    yield Expected("no-source-route", "warning", place="eth1")


@case()
def rp_filter(net):
    two_metrics(net)
    net.sysctl(net.a, {"net.ipv4.conf.all.rp_filter": 1})
    net.serve()
    yield Expected("rp-filter", "error", place="eth1")


@case()
def tunnel(net):
    two_metrics(net)
    net.ip(net.a, "tuntap add dev tun0 mode tun", "address add 10.66.0.2/24 dev tun0", "link set tun0 up",
           "route add 0.0.0.0/1 dev tun0", "route add 128.0.0.0/1 dev tun0")
    net.lab.settle = lambda host: None  # a tunnel without its program has no carrier
    net.serve()
    yield Expected("tunnel", "warning", place="tun0")


@case()
def link_down(net):
    net.serve()
    net.ip(net.a, "link set eth1 down")
    yield Expected("link-down", "warning", place="eth1")


@case()
def wrong_gateway(net):
    net.ip(net.a, "route replace default via 10.1.0.1 dev eth1 onlink table 102")
    net.serve()
    yield Expected("wrong-gateway", "error", place="eth1")


@case()
def gateway_silent(net):
    net.ip(net.a, "route replace default via 10.2.0.77 dev eth1 table 102")
    net.serve()
    yield Expected("gateway-silent", "error", place="eth1")


@case()
def same_network(net):
    # The second uplink is plugged into the first one's network.
    net.ip(net.a, "link del eth1", "rule del from 10.2.0.2 lookup 102")
    net.ip(net.r0, "address flush dev in0", "link add br0 type bridge", "link set in0 master br0",
           "address add 10.1.0.1/24 dev br0", "link set br0 up")
    net.lab.veth(net.a, "eth1", "10.1.0.3/24", net.r0, "in1", "10.77.0.1/24")
    net.ip(net.r0, "address flush dev in1", "link set in1 master br0")
    net.ip(net.a, "route add default via 10.1.0.1 dev eth1 table 102", "rule add from 10.1.0.3 lookup 102")
    net.run(net.a, "ethtool -K eth1 gro on")
    net.serve()
    yield Expected("same-network", "warning", place="eth1")


@case()
def address_twice(net):
    net.ip(net.a, "address add 10.1.0.2/32 dev eth1")
    net.serve()
    yield Expected("address-twice", "warning", place="eth1")


@case()
def firewall_out(net):
    net.nft(net.a, f"table inet filter {{ chain output {{ type filter hook output priority 0; udp dport {PORT} drop; }} }}")
    net.serve()
    yield Expected("firewall-out", "error")


@case()
def firewall_in(net):
    net.nft(net.a, """table inet filter { chain input { type filter hook input priority 0; policy drop;
        iifname lo accept; tcp dport 22 accept; } }""")
    net.serve()
    # Its time server's answers are dropped as well: it is left out.
    yield Expected("firewall-in", "error")


@case()
def udp_blocked(net):
    net.nft(net.r1, f"table inet f {{ chain c {{ type filter hook forward priority 0; udp dport {PORT} drop; }} }}")
    net.serve()
    yield Expected("udp-blocked", "error", mends="there", place="eth1")


@case()
def dest_refused(net):
    yield Expected("dest-refused", "error", dest=f"{DEST}:9000", mends="there")


@case()
def dest_silent(net):
    net.nft(net.z, "table inet filter { chain input { type filter hook input priority 0; policy drop; udp dport 123 accept; } }")
    yield Expected("dest-silent", "error", mends="there")


@case()
def mtu_black_hole(net):
    # The router cannot send longer packets, and all its ICMP is lost.
    net.ip(net.r1, "link set out0 mtu 1400", "rule add pref 0 ipproto icmp blackhole")
    net.serve()
    yield Expected("mtu-black-hole", "warning", place="eth1")


@case()
def udp_buffers(net):
    net.serve()
    before = [limit.read_text() for limit in LIMITS]

    def by(command):
        # The limits are those of the machine, not of a namespace.
        sh("sh", "-ec", command)

    try:
        LIMITS[0].write_text("212992")
        yield Expected("udp-buffers", "warning", prefix=PLAIN, by=by)
    finally:
        for limit, value in zip(LIMITS, before):
            limit.write_text(value)


@case()
def gso_off(net):
    net.run(net.a, "ethtool -K eth1 gso off")
    net.serve()
    yield Expected("gso-off", "warning", place="eth1")


@case()
def gro_off(net):
    net.run(net.a, "ethtool -K eth1 gro off")
    net.serve()
    yield Expected("gro-off", "warning", place="eth1")


@case()
def nat_forgets(net):
    net.nft(net.a, "table ip nat { chain c { type nat hook postrouting priority 100; oifname \"eth*\" masquerade; } }")
    net.sysctl(net.a, {"net.netfilter.nf_conntrack_udp_timeout": 5, "net.netfilter.nf_conntrack_udp_timeout_stream": 5})
    net.serve()
    yield Expected("nat-forgets", "warning")


@case()
def nat_symmetric(net):
    """No peer reaches the host through its uplinks, but one does through a relay."""
    net.nft(net.r1, "table ip nat { chain c { type nat hook postrouting priority 100; oifname out0 masquerade fully-random; } }")
    net.serve()
    net.relay()
    finding = yield Expected("nat-symmetric", "warning", "--stun", DEST, mends="case", place="eth1")
    [command] = finding["mend_at_destination"]
    # Relays forward to public addresses only, and there are none here.
    relay = net.lab.spawn(net.z, [net.binary, *command.split()[1:], "--port", "3480", "--allow-peer", DEST])
    via = relay.wait_line("turn:", 10).replace("0.0.0.0", DEST)
    result = net.perf("--bind", "eth1", "--via", via, "--reverse", "--time", "2")
    relayed = [path for path in result["paths"] if path["relay"]]
    if not (relayed and relayed[0]["state"] == "active" and relayed[0]["packets_received"] > 100):
        raise Failed(f"the destination did not send through the relay: {result['paths']}")


@case()
def nat_timeout(net):
    """What the advice keeps open, and what closes without it."""
    net.nft(net.r1, "table ip nat { chain c { type nat hook postrouting priority 100; "
                    f"udp dport {PORT} counter masquerade; udp dport {PORT + 1} counter masquerade; oifname out0 masquerade; }} }}")
    # A server knows the address behind the NAT, and its packets there would open the way from the other side.
    net.nft(net.r1, "table ip filter { chain f { type filter hook forward priority 0; iifname out0 ct state new drop; } }")
    net.sysctl(net.r1, {"net.netfilter.nf_conntrack_udp_timeout": 3, "net.netfilter.nf_conntrack_udp_timeout_stream": 3})
    net.serve()
    net.serve(PORT + 1)
    net.lab.spawn(net.z, [net.binary, "relay", "--listen", DEST, "--json"]).wait_line("{", 10)
    finding = yield Expected("nat-timeout", "warning", "--stun", DEST, "--long=8s", mends="case", place="eth1")
    advised = re.search(r"--set hb_interval=\w+", finding["sentence"])[0].split()

    def mappings():
        """How many the router of eth1 made for each of the two servers."""
        return [int(n) for n in re.findall(r"counter packets (\d+)", net.run(net.r1, "nft list table ip nat"))]

    before = mappings()
    # Path 1 carries the messages; path 2 is silent but for its heartbeats.
    quiet = ("--bind", "eth0,eth1:backup", "--messages", "100", "--rate", "8kbit/s", "--time", "9")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for run in [pool.submit(net.perf, *quiet, *advised), pool.submit(net.perf, *quiet, port=PORT + 1)]:
            run.result()
    made = [now - then for now, then in zip(mappings(), before)]
    if not made[0] == 1 < made[1]:
        raise Failed(f"path 2 needed {made[0]} mappings with {' '.join(advised)}, {made[1]} without")


@case()
def clock_wrong(net):
    """The clock of the machine is not touched: `date` writes down what it is told, and the time server's clock is
    moved by that instead."""
    net.serve()
    net.time.kill()
    server = net.tell_time(3600)
    bin_dir = net.lab.dir / "bin"
    bin_dir.mkdir()
    told = net.lab.dir / "told"
    (bin_dir / "date").write_text(f'#!/bin/sh\ncase "$1" in\n-s) echo "$2" > {told} ;;\n*) exec /bin/date "$@" ;;\nesac\n')
    (bin_dir / "date").chmod(0o755)
    began = time.time()
    yield Expected("clock-wrong", "warning", by=lambda command: net.run(net.a, command, path=bin_dir))
    moved = float(told.read_text().strip().removeprefix("@")) - time.time()
    if not 3600 - 5 - (time.time() - began) < moved < 3600 + 5:
        raise Failed(f"the clock would be moved by {moved:.0f} s")
    server.kill()
    net.tell_time(3600 - moved)


@case(v6=True)
def ipv6_off(net):
    net.serve()
    net.advertise()
    net.sysctl(net.a, {"net.ipv6.conf.eth0.disable_ipv6": 1})
    yield Expected("ipv6-off", "warning", place="eth0")
    until = time.monotonic() + 5
    while "fd01:" not in sh("ip", "-n", net.a, "-6", "address", "show", "dev", "eth0", "scope", "global"):
        if time.monotonic() > until:
            raise Failed("the router's offer of an address was not taken")
        time.sleep(0.05)


@case(v6=True)
def no_route_by_ipv6(net):
    net.with_v6_uplinks()
    net.ip(net.a, "-6 route flush table 102", "-6 rule del from fd02::2 lookup 102")
    net.serve()
    yield Expected("no-route", "error", "--time-server", DEST, dest=f"[{DEST6}]", place="eth1")
