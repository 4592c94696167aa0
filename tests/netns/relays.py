"""Two hosts with one uplink each, and relays that give them further paths."""

import json
import signal

from cases import prepare, settings
from transfer import Transfer, check_complete, mbit

RATE = 20e6  # bit/s of each path, as tbf counts them
RELAYS = 3
SUM_MIN = 0.85  # of the paths' rates together
PAUSE_MAX = 3.0  # seconds without a delivery when a relay dies
CLIENT, SERVER = "10.90.0.1", "10.90.1.1"


class Overlay:
    """A client and a server behind a router each; between the routers a direct link, and hosts with a relay.
    Every way between the routers is shaped to `RATE`."""

    def __init__(self, case, lab, delay_ms=None):
        self.case, self.lab = case, lab
        self.client, self.server = lab.host("client"), lab.host("server")
        self.near, self.far = lab.host("near"), lab.host("far")
        lab.veth(self.client, "c0", f"{CLIENT}/24", self.near, "n0", "10.90.0.254/24")
        lab.veth(self.server, "s0", f"{SERVER}/24", self.far, "f0", "10.90.1.254/24")
        ends = (self.near, "n1", "10.93.0.1/24", self.far, "f1", "10.93.0.2/24", "20mbit")
        if delay_ms:
            lab.wire(*ends, "--delay-ms", str(delay_ms))
        else:
            lab.veth(*ends)
        lab.route(self.client, "default", "via", "10.90.0.254")
        lab.route(self.server, "default", "via", "10.90.1.254")
        lab.route(self.near, "10.90.1.0/24", "via", "10.93.0.2")
        lab.route(self.far, "10.90.0.0/24", "via", "10.93.0.1")
        for router in (self.near, self.far):
            lab.forward(router)
        self.hosts, self.relays = [], []
        for number in range(1, RELAYS + 1):
            self._between(number)

    def _between(self, number):
        """A relay on a way of its own."""
        host = self.lab.host(f"relay{number}")
        mine, theirs = f"10.91.{number}", f"10.92.{number}"
        self.lab.veth(self.near, f"nr{number}", f"{mine}.254/24", host, "near0", f"{mine}.1/24", "20mbit")
        self.lab.veth(self.far, f"fr{number}", f"{theirs}.254/24", host, "far0", f"{theirs}.1/24")
        self.lab.route(host, "10.90.0.0/24", "via", f"{mine}.254")
        self.lab.route(host, "10.90.1.0/24", "via", f"{theirs}.254")
        self.lab.route(self.far, f"{mine}.0/24", "via", f"{theirs}.1")
        self._serve(host, f"{mine}.1")

    def behind_the_direct_link(self):
        """One more relay, whose way begins with the direct link, and 5 ms beyond it."""
        host = self.lab.host("relay9")
        self.lab.wire(self.far, "fr9", "10.94.0.254/24", host, "near0", "10.94.0.1/24", "100mbit", "--delay-ms", "5")
        self.lab.route(host, "default", "via", "10.94.0.254")
        self.lab.route(self.near, "10.94.0.0/24", "via", "10.93.0.2")
        self._serve(host, "10.94.0.1")

    def _serve(self, host, address):
        relay = self.lab.spawn(host, [self.case.options.binary, "relay", "--json", "--user", "ann:secret", "--listen",
                                      address, "--allow-peer", "10.0.0.0/8", "--rate-per-user", "0"])
        relay.wait_line('"listening"', 20)
        self.hosts.append(host)
        self.relays.append((relay, address))

    def via(self):
        """The words that name all relays."""
        return ["--via", ",".join(f"turn:ann:secret@{address}" for _, address in self.relays)]

    def start(self, mb):
        """A transfer over all paths."""
        source, size, digest = prepare(self.case, self.lab, mb)
        words = settings(self.case.options)
        transfer = Transfer(self.lab, self.case.options.binary, source, self.server, words)
        transfer.start(self.client, *words, *self.via())
        return transfer, size, digest


def sum_of_paths(case, lab):
    """The direct path and three relays carry almost the sum of their rates."""
    overlay = Overlay(case, lab)
    transfer, _, digest = overlay.start(100)
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    share = sent.get("goodput_bps", 0) / (RATE * (RELAYS + 1))
    case.check("goodput", f"{mbit(sent.get('goodput_bps', 0))}, {share:.1%} of the paths' rates", share >= SUM_MIN)
    names = sorted(path["relay"] or "direct" for path in sent.get("paths", []))
    wanted = sorted(["direct", *(f"{address}:3478" for _, address in overlay.relays)])
    case.check("the paths' relays", names, names == wanted)


def lose_a_relay(case, lab, lose):
    """A transfer in which `lose(overlay)` takes a relay away after a third."""
    overlay = Overlay(case, lab)
    transfer, size, digest = overlay.start(60)
    transfer.wait_bytes(size // 3, 60)
    lose(overlay)
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    gap = sent.get("max_delivery_gap_s") or 99
    case.check("longest pause in delivery", f"{gap:.3f} s", gap < PAUSE_MAX)
    lost = f"{overlay.relays[0][1]}:3478"
    states = [path["state"] for path in sent.get("paths", []) if path["relay"] == lost]
    case.check("state of the path through the relay that is gone", states, states and "active" not in states)


def relay_killed(case, lab):
    """The program of a relay is killed."""
    lose_a_relay(case, lab, lambda overlay: overlay.relays[0][0].signal(signal.SIGKILL))


def relay_blackholed(case, lab):
    """The host of a relay is cut off from everything."""
    def cut(overlay):
        for dev in ("near0", "far0"):
            lab.link(overlay.hosts[0], dev, up=False)
    lose_a_relay(case, lab, cut)


def relays_only(case, lab):
    """There is no direct way: the association is opened through a relay."""
    overlay = Overlay(case, lab)
    lab.link(overlay.near, "n1", up=False)
    transfer, _, digest = overlay.start(20)
    transfer.wait(60)
    sent = check_complete(case, transfer, digest)
    carried = {path["relay"]: path["bytes_acked"] > 0 for path in sent.get("paths", [])}
    wanted = {None: False, **{f"{address}:3478": True for _, address in overlay.relays}}
    case.check("the paths that carried data", carried, carried == wanted)


def list_paths(case, lab):
    """`manypath paths` finds the routers, uses the disjoint relays and leaves out the one behind the direct link."""
    overlay = Overlay(case, lab, delay_ms=10)
    overlay.behind_the_direct_link()
    receiver = lab.spawn(overlay.server, [case.options.binary, "recv", "--json", "--dir", str(lab.dir)])
    receiver.wait_line('"listening"', 20)
    picture = lab.dir / "paths.svg"
    command = [case.options.binary, "paths", "--json", *overlay.via(), "--svg", str(picture), SERVER]
    listing = lab.spawn(overlay.client, command)
    code = listing.wait(60)
    case.check("exit code", code, code == 0, listing.said)
    report = json.loads(listing.stdout[-1][1]) if listing.stdout else {"paths": []}
    paths = {path["relay"] or "direct": path for path in report["paths"]}
    direct = paths.get("direct", {"hops": []})
    hops = [hop["address"] for hop in direct["hops"]]
    case.check("the direct path's hops", hops, hops == ["10.90.0.254", "10.93.0.2", SERVER])
    losses = [path["loss"] for path in report["paths"]]
    case.check("losses", losses, losses == [0.0] * 5)
    behind = "10.94.0.1:3478"
    chosen = sorted(name for name, path in paths.items() if path["selected"])
    # The direct link is all of the direct path, and half of the way through the last relay.
    wanted = sorted(name for name in paths if name != behind)
    case.check("paths to use", chosen, chosen == wanted, lambda: json.dumps(report, indent=1))
    links = [link for share in paths.get(behind, {}).get("shares", []) for link in share["links"]]
    shared = ("10.90.0.254", "10.93.0.2") in [(link["from"], link["to"]) for link in links]
    case.check("the direct link is seen to be shared", shared, shared)
    text = picture.read_text() if picture.exists() else ""
    case.check("the picture has five paths", text.count("<polyline"), text.count("<polyline") == 5)
    for name, path in paths.items():
        case.note(name, f"{(path['rtt_s'] or 0) * 1e3:.1f} ms, score {path['score']:.0f}, {path['why']}")


CASES = {
    "relays": sum_of_paths,
    "relays-only": relays_only,
    "relay-killed": relay_killed,
    "relay-blackholed": relay_blackholed,
    "paths": list_paths,
}
