"""Transfers between private networks whose users want relays for everything, or to meet only."""

import base64
import ipaddress
import signal
import struct
import sys
import time

import capture
from direct_cases import restart
from failures import NO_PATH
from nat import CONES, SYMMETRIC
from nat_scene import Scene
from transfer import HERE

MB, REBOOT_MB = 10, 60
REBOOT_MAX = 5  # seconds until data flows after a router has lost its mappings
MEETING_MAX = 100_000  # bytes between the relay and both ends: handshakes, hellos, lists, heartbeats, SACKs
GIVEN_UP_MAX = 16  # seconds from the start of the sender: 10 s for the search


def places_in(ticket):
    """The addresses of the receiver itself in a ticket, and those on relays (crates/files/src/ticket.rs)."""
    text = ticket.split(":")[1].upper()
    body = base64.b32decode(text + "=" * (-len(text) % 8))
    at = 4 + body[3] + (32 if body[0] in (1, 3) else 0)

    def take_ip():
        nonlocal at
        length = {4: 4, 6: 16}[body[at]]
        ip = ipaddress.ip_address(body[at + 1:at + 1 + length])
        at += 1 + length
        return str(ip)

    count, at = body[at], at + 1
    own = [take_ip() for _ in range(count)]
    count, at = body[at], at + 1
    relayed = []
    for _ in range(count):
        relayed.append(take_ip())
        at += 4
    return own, relayed


class Capture:
    """All packets of a host, until it is read."""

    def __init__(self, lab, host, name):
        self.file = lab.dir / f"{name}.pcap"
        self.process = lab.spawn(host, [sys.executable, str(HERE / "capture.py"), str(self.file)])
        self.process.wait_line("ready", 10)

    def peers(self):
        """The addresses that UDP packets went to or came from, and the packets' bytes for each. Ends the capture."""
        self.process.signal(signal.SIGTERM)
        self.process.wait(20)
        seen = {}
        for packet in capture.packets(self.file):
            kind, version, protocol = struct.unpack_from("!H", packet, 12)[0], packet[14] >> 4, packet[23]
            if (kind, version, protocol) == (0x0800, 4, 17):
                for at in (26, 30):
                    ip = str(ipaddress.ip_address(packet[at:at + 4]))
                    seen[ip] = seen.get(ip, 0) + len(packet)
        return seen


def relay_only(case, lab):
    """The receiver takes relays alone, behind NATs that would let direct paths in. The sender has no such wish."""
    scene = Scene(case, lab, CONES[0], CONES[0], mb=MB)
    relay = scene.relays.places[0][1]
    seen = {name: Capture(lab, getattr(scene.homes, name), name) for name in ("sender", "receiver")}
    scene.listen("--relay-only")
    own, relayed = places_in(scene.transfer.listening["ticket"])
    case.check("addresses of the receiver in the ticket", own, own == [] and scene.transfer.listening["addresses"] == [])
    case.check("relayed addresses in the ticket", relayed, relayed == [relay])
    sent = scene.start().finish(60)
    scene.check_relayed(sent)
    other = [path["remote"] for path in scene.direct(sent)]
    case.check("paths that take no relay", other, other == [])
    for name, of in (("sender", "192.168.1."), ("receiver", "192.168.2.")):
        # The sender, which has no such wish, asks its network for a port of the router.
        peers = sorted(ip for ip in seen[name].peers() if not ip.startswith((of, "239.")))
        case.check(f"hosts that the {name} spoke with", peers, peers == [relay])


def relay_to_relay(case, lab):
    """The sender takes relays alone and names one; the receiver has no such wish, and does not see where the sender is."""
    scene = Scene(case, lab, CONES[0], CONES[0], mb=MB, relays=2)
    own = scene.relays.places[1][1]
    seen = Capture(lab, scene.homes.sender, "sender")
    scene.listen(via=scene.relays.word(0))
    # A trace of hops would speak with routers.
    scene.start("--relay-only", "--via", scene.relays.word(1), "--trace-interval", "off").finish(60)
    got = scene.transfer.result(scene.transfer.recv)
    remotes = sorted({path["remote"].rsplit(":", 1)[0] for path in got["paths"]})
    case.check("where the receiver saw the sender", remotes, remotes == [own])
    peers = sorted(ip for ip in seen.peers() if not ip.startswith("192.168.1."))
    case.check("hosts that the sender spoke with", peers, peers == [own])


class Meeting(Scene):
    """A scene in which one end, or both, let the relay carry no content."""

    def __init__(self, case, lab, nats, wishes, mb=MB):
        super().__init__(case, lab, nats, nats, mb=mb)
        self.captures = [Capture(lab, host, host) for host in (self.homes.sender, self.homes.receiver)]
        words = {end: ["--direct-only"] if end in wishes else [] for end in ("sender", "receiver")}
        self.listen(*words["receiver"]).start(*words["sender"])

    def check_relay(self):
        """The relay had nothing to carry but what it takes to meet."""
        relay = self.relays.places[0][1]
        through = sum(one.peers().get(relay, 0) for one in self.captures)
        self.case.measure("bytes between the relay and both ends", through, "B")
        self.case.check("bytes between the relay and both ends", through, 1000 < through < MEETING_MAX)


def direct_only(wishes):
    """A case of ends between which a direct path can be had."""
    def run(case, lab):
        scene = Meeting(case, lab, CONES[2], wishes)
        sent = scene.finish(60)
        carried = sum(path["bytes_sent"] for path in scene.direct(sent))
        case.check("content that went directly", f"{carried / 1e6:.1f} MB", carried > scene.size)
        scene.check_relay()
    return run


def impossible(wishes):
    """A case of ends that no direct path can connect."""
    def run(case, lab):
        scene = Meeting(case, lab, SYMMETRIC, wishes)
        send, recv = scene.transfer.send, scene.transfer.recv
        code = send.wait(GIVEN_UP_MAX + 10)
        recv.wait(10)
        took = send.ended - send.begin
        case.check("sender's exit code", code, code == NO_PATH, send.said)
        says = "--direct-only" in send.said() and "manypath doctor" in send.said()
        case.check("it says what to do", says, says, send.said)
        if "receiver" in wishes:
            case.check("receiver's exit code", recv.code, recv.code == NO_PATH, recv.said)
        case.check("sender ended after", f"{took:.1f} s", took < GIVEN_UP_MAX, pace=True)
        case.check("stored", scene.transfer.stored(), scene.transfer.stored() == [])
        scene.check_relay()
    return run


def reboot(case, lab):
    """The receiver's router loses its mappings in mid-transfer: both ends meet at the relay again, which carries nothing."""
    scene = Meeting(case, lab, CONES[2], ["sender"], mb=REBOOT_MB)
    scene.transfer.wait_bytes(scene.size // 4, 60)
    restart(scene.homes.receiver_nat, 2)
    begun = time.monotonic()
    before = scene.transfer.progress()[-1][1]
    took = scene.transfer.wait_bytes(before + 2_000_000, 60) - begun
    case.measure("data after the restart", took, "s")
    case.check("data after the restart", f"{took:.2f} s", took < REBOOT_MAX, pace=True)
    scene.finish(60)
    scene.check_relay()


CASES = {
    "nat-relay-only": relay_only,
    "nat-relay-only-sender": relay_to_relay,
    "nat-direct-only": direct_only(["sender"]),
    "nat-direct-only-receiver": direct_only(["receiver"]),
    "nat-direct-only-reboot": reboot,
    "nat-direct-only-impossible": impossible(["sender"]),
    "nat-direct-only-impossible-receiver": impossible(["receiver"]),
}
