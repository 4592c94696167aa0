"""Ways that carry packets of fewer than 1500 bytes."""

import json

from cases import prepare, settings
from namespaces import sh, tbf
from transfer import Transfer, check_complete, mbit

RATE = 20e6  # bit/s of the way, as tbf counts it
SHARE_MIN = 0.85  # of the rate, headers included
PAUSE_MAX = 3.0  # seconds without a delivery
CLIENT, SERVER = "10.95.1.1", "10.95.2.1"


class Way:
    """A client and a server with a router between them."""

    def __init__(self, case, lab):
        self.case, self.lab = case, lab
        self.client, self.router, self.server = lab.host("client"), lab.host("router"), lab.host("server")
        lab.veth(self.client, "c0", f"{CLIENT}/24", self.router, "near0", "10.95.1.2/24")
        lab.veth(self.server, "s0", f"{SERVER}/24", self.router, "far0", "10.95.2.2/24")
        # The kernel's batches pass whatever the length of their packets: there shall be none.
        for host, dev in ((self.client, "c0"), (self.server, "s0"), (self.router, "near0"), (self.router, "far0")):
            sh("ip", "-n", host, "link", "set", dev, "gso_max_segs", "1")
        for host, dev in ((self.router, "near0"), (self.router, "far0")):
            sh("tc", "-n", host, "qdisc", "add", "dev", dev, *tbf(f"{int(RATE)}bit"))
        lab.route(self.client, "default", "via", "10.95.1.2")
        lab.route(self.server, "default", "via", "10.95.2.2")

    def forward(self):
        """The router forwards."""
        self.lab.forward(self.router)
        return self

    def says(self, mtu):
        """From now on the router refuses to send longer packets to the server, and says so by ICMP. It cuts those that
        may be cut."""
        sh("ip", "-n", self.router, "link", "set", "far0", "mtu", str(mtu))

    def swallows(self, mtu):
        """The same, but the router sends no ICMP."""
        sh("ip", "-n", self.router, "rule", "add", "pref", "0", "ipproto", "icmp", "blackhole")
        self.says(mtu)

    def send(self, mb):
        """A transfer from the client to the server."""
        source, size, digest = prepare(self.case, self.lab, mb)
        words = settings(self.case.options)
        transfer = Transfer(self.lab, self.case.options.binary, source, self.server, words)
        transfer.start(self.client, *words)
        return transfer, size, digest


def check(case, transfer, digest, mtu):
    """What must hold on a way of that size."""
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    share = sent.get("goodput_bps", 0) / RATE
    case.check("goodput", f"{mbit(sent.get('goodput_bps', 0))}, {share:.1%} of the rate", share >= SHARE_MIN,
               pace=True)
    gap = sent.get("max_delivery_gap_s") or 99
    case.check("longest pause in delivery", f"{gap:.3f} s", gap < PAUSE_MAX, pace=True)
    found = [path["mtu_bytes"] for path in sent.get("paths", [])]
    case.check("sizes found", found, found and all(mtu - 8 <= size <= mtu for size in found))
    changes = [change for path in sent.get("paths", []) for change in path["state_changes"]]
    case.check("changes of the path's state", len(changes), len(changes) <= 2)


def router_says(case, lab):
    """The router sends packets of at most 1420 bytes, as to a WireGuard tunnel."""
    way = Way(case, lab).forward()
    way.says(1420)
    transfer, _, digest = way.send(20)
    check(case, transfer, digest, 1420)


def router_is_silent(case, lab):
    """Packets of more than 1420 bytes vanish."""
    way = Way(case, lab).forward()
    way.swallows(1420)
    transfer, _, digest = way.send(20)
    check(case, transfer, digest, 1420)


def own_interface(case, lab):
    """The sender's own interface takes 1420 bytes."""
    way = Way(case, lab).forward()
    sh("ip", "-n", way.client, "link", "set", "c0", "mtu", "1420")
    transfer, _, digest = way.send(20)
    check(case, transfer, digest, 1420)


def falls(case, lab, change, mtu):
    """The size falls at a third of the transfer."""
    way = Way(case, lab).forward()
    transfer, size, digest = way.send(30)
    transfer.wait_bytes(size // 3, 60)
    change(way, mtu)
    check(case, transfer, digest, mtu)


def falls_and_says(case, lab):
    """In mid-transfer the router begins to refuse packets of more than 1280 bytes."""
    falls(case, lab, Way.says, 1280)


def falls_in_silence(case, lab):
    """In mid-transfer packets of more than 1280 bytes begin to vanish."""
    falls(case, lab, Way.swallows, 1280)


def relay_only(case, lab):
    """`perf client -R --via`: the router does not forward but is a relay, of which the server, which sends, does not
    know; its header takes 4 bytes of every packet."""
    way = Way(case, lab)
    binary = case.options.binary
    relay = lab.spawn(way.router, [binary, "relay", "--json", "--user", "ann:secret", "--listen", "10.95.1.2",
                                   "--allow-peer", "10.0.0.0/8", "--rate-per-user", "0"])
    relay.wait_line('"listening"', 20)
    server = lab.spawn(way.server, [binary, "perf", "server", "--port", "9899", "--once", "--json", *settings(case.options)])
    server.wait_line("listening", 20)
    client = lab.spawn(way.client, [binary, "perf", "client", f"{SERVER}:9899", "-R", "--time", "5", "--json",
                                    "--via", "turn:ann:secret@10.95.1.2", *settings(case.options)])
    code = client.wait(60)
    case.check("the client's exit code", code, code == 0, client.said)
    result = next((json.loads(line) for _, line in reversed(client.stdout) if '"paths"' in line), {})
    rate = result.get("down", result).get("goodput_bps", 0)
    share = rate / RATE
    case.check("goodput", f"{mbit(rate)}, {share:.1%} of the rate", share >= SHARE_MIN,
               pace=True)


CASES = {
    "mtu-router": router_says,
    "mtu-silent": router_is_silent,
    "mtu-interface": own_interface,
    "mtu-falls": falls_and_says,
    "mtu-falls-silent": falls_in_silence,
    "mtu-relay": relay_only,
}
