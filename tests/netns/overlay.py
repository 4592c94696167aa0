"""A network of two hosts with one uplink each, and of hosts with relays between them."""

from cases import prepare, settings
from namespaces import sh
from transfer import Transfer

RATE = 20e6  # bit/s of each path, as tbf counts them
RELAYS = 3
CLIENT, SERVER = "10.90.0.1", "10.90.1.1"


class Overlay:
    """A client and a server behind a router each; between the routers a direct link, and hosts with a relay.
    Every way between the routers is shaped to `rate`. A way with a delay is a `wire.py`, which may also lose packets."""

    def __init__(self, case, lab, delay_ms=None, relays=RELAYS, relay_delays_ms=None, rate=RATE, loss=0):
        self.case, self.lab, self.rate, self.loss = case, lab, f"{int(rate)}bit", loss
        self.client, self.server = lab.host("client"), lab.host("server")
        self.near, self.far = lab.host("near"), lab.host("far")
        lab.veth(self.client, "c0", f"{CLIENT}/24", self.near, "n0", "10.90.0.254/24")
        lab.veth(self.server, "s0", f"{SERVER}/24", self.far, "f0", "10.90.1.254/24")
        self.direct = self._way(delay_ms, self.near, "n1", "10.93.0.1/24", self.far, "f1", "10.93.0.2/24")
        lab.route(self.client, "default", "via", "10.90.0.254")
        lab.route(self.server, "default", "via", "10.90.1.254")
        lab.route(self.near, "10.90.1.0/24", "via", "10.93.0.2")
        lab.route(self.far, "10.90.0.0/24", "via", "10.93.0.1")
        for router in (self.near, self.far):
            lab.forward(router)
        self.hosts, self.relays = [], []
        for number in range(1, relays + 1):
            self._between(number, relay_delays_ms and relay_delays_ms[number - 1])

    def _way(self, delay_ms, *ends):
        """A shaped link; the process that is the link, if it has a delay."""
        if delay_ms:
            return self.lab.wire(*ends, self.rate, "--delay-ms", str(delay_ms), "--loss", str(self.loss))
        return self.lab.veth(*ends, self.rate)

    def _between(self, number, delay_ms, peers=None):
        """A relay on a way of its own; it knows `peers` if they are given."""
        host = self.lab.host(f"relay{number}")
        mine, theirs = f"10.91.{number}", f"10.92.{number}"
        self._way(delay_ms, self.near, f"nr{number}", f"{mine}.254/24", host, "near0", f"{mine}.1/24")
        self.lab.veth(self.far, f"fr{number}", f"{theirs}.254/24", host, "far0", f"{theirs}.1/24")
        self.lab.route(host, "10.90.0.0/24", "via", f"{mine}.254")
        self.lab.route(host, "10.90.1.0/24", "via", f"{theirs}.254")
        self.lab.route(self.far, f"{mine}.0/24", "via", f"{theirs}.1")
        more = []
        if peers is not None:
            self.lab.route(host, "10.91.0.0/16", "via", f"{mine}.254")
            # The first of all names itself, as where all have one list.
            more = ["--peers", ",".join(peers) or f"{mine}.1"]
        self._serve(host, f"{mine}.1", more)

    def peer_relays(self, number):
        """`number` more relays that know the first one and, by it, each other. They speak to each other through the
        router at the client's side."""
        for count in range(len(self.hosts) + 1, len(self.hosts) + 1 + number):
            self._between(count, None, peers=[address for _, address in self.relays[:1]])

    def behind_the_direct_link(self):
        """One more relay, whose way begins with the direct link, and 5 ms beyond it."""
        host = self.lab.host("relay9")
        self.lab.wire(self.far, "fr9", "10.94.0.254/24", host, "near0", "10.94.0.1/24", "100mbit", "--delay-ms", "5")
        self.lab.route(host, "default", "via", "10.94.0.254")
        self.lab.route(self.near, "10.94.0.0/24", "via", "10.93.0.2")
        self._serve(host, "10.94.0.1")

    def far_link(self, delay_ms):
        """A link into the router at the server's side, for relays whose ways end alike: two routers and the link."""
        gate, mid = self.lab.host("gate"), self.lab.host("mid")
        self.lab.veth(gate, "mid0", "10.95.0.1/24", mid, "gate0", "10.95.0.2/24")
        self._way(delay_ms, mid, "far0", "10.96.0.1/24", self.far, "fm0", "10.96.0.2/24")
        self.lab.route(gate, "10.90.1.0/24", "via", "10.95.0.2")
        self.lab.route(mid, "10.90.1.0/24", "via", "10.96.0.2")
        self.lab.route(self.far, "10.95.0.0/24", "via", "10.96.0.1")
        for router in (gate, mid):
            self.lab.forward(router)
        self.gate, self.mid = gate, mid

    def before_the_far_link(self, number):
        """A relay on a way of its own as far as that link."""
        host = self.lab.host(f"relay{number}")
        mine, theirs = f"10.91.{number}", f"10.92.{number}"
        self._way(None, self.near, f"nr{number}", f"{mine}.254/24", host, "near0", f"{mine}.1/24")
        self.lab.veth(self.gate, f"gr{number}", f"{theirs}.254/24", host, "far0", f"{theirs}.1/24")
        self.lab.route(host, "10.90.0.0/24", "via", f"{mine}.254")
        for net in ("10.90.1.0/24", "10.95.0.0/24", "10.96.0.0/24"):
            self.lab.route(host, net, "via", f"{theirs}.254")
        for net in (f"{mine}.0/24", f"{theirs}.0/24"):
            self.lab.route(self.far, net, "via", "10.96.0.1")
            self.lab.route(self.mid, net, "via", "10.95.0.1")
        self.lab.route(self.gate, f"{mine}.0/24", "via", f"{theirs}.1")
        self._serve(host, f"{mine}.1")

    def _serve(self, host, address, more=()):
        relay = self.lab.spawn(host, [self.case.options.binary, "relay", "--json", "--user", "ann:secret", "--listen",
                                      address, "--allow-peer", "10.0.0.0/8", "--rate-per-user", "0", *more])
        relay.wait_line('"listening"', 20)
        self.hosts.append(host)
        self.relays.append((relay, address))

    def via(self, relays=None):
        """The words that name the first `relays` relays, or all."""
        names = ",".join(f"turn:ann:secret@{address}" for _, address in self.relays[:relays])
        return ["--via", names] if names else []

    def send_single_packets(self):
        """From now on a router's queue holds packets, not the kernel's batches of up to 32 KiB, which tbf keeps or drops whole."""
        ends = [(self.client, "c0"), (self.server, "s0"), *((host, "near0") for host in self.hosts)]
        for host, dev in ends:
            sh("ip", "-n", host, "link", "set", dev, "gso_max_segs", "1")

    def start(self, mb, *more, relays=None, sender=()):
        """A transfer over the direct path, and those through all relays or the first `relays`. `more` are options of both
        ends, `sender` those of one."""
        source, size, digest = prepare(self.case, self.lab, mb)
        words = [*settings(self.case.options), *more]
        transfer = Transfer(self.lab, self.case.options.binary, source, self.server, words)
        transfer.start(self.client, *words, *sender, *self.via(relays))
        return transfer, size, digest
