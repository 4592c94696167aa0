"""Transfers between private networks that begin through a relay and go on directly."""

import signal
import time

from namespaces import sh
from nat import CONES, LAN, SYMMETRIC, WAN, check_miniupnpd, nft
from nat_scene import Scene, first_active
from transfer import CONTENT_SHARE, delivered_at, mbit

# Public addresses of which miniupnpd knows no special use.
MAPPED_NET = "203.0"


def goes_direct(case, lab, sender, receiver, limit):
    """The transfer ends on a direct path, which worked within `limit` seconds."""
    scene = Scene(case, lab, sender, receiver, mb=40).start()
    scene.check_direct(scene.finish(), limit)


def cones(sender, receiver):
    """A case of two NATs that give a socket one public port."""
    return lambda case, lab: goes_direct(case, lab, sender, receiver, 2)


def symmetric(sender, receiver):
    """A case of one NAT with a port for each peer, and one that does not mind the port."""
    return lambda case, lab: goes_direct(case, lab, sender, receiver, 5)


def mapped(*ends, pcp=True):
    """A case of two NATs with a random port for each peer. The routers of these ends map ports when they are asked, without
    `pcp` by UPnP IGD alone."""
    def run(case, lab):
        check_miniupnpd()
        scene = Scene(case, lab, mb=60, net=MAPPED_NET)
        for end in ends:
            getattr(scene.homes, f"{end}_nat").map_ports(pcp)
        scene.check_direct(scene.start().finish(), 5)
    return run


def by_v6(path):
    """True for a path of IPv6."""
    return path["remote"].startswith("[")


def ipv6(relays_v6):
    """A case of hosts that have IPv6 as well, with routers that let in only answers, and NATs between which nobody can know a
    port: the content takes IPv6. `relays_v6`: the relay is reached by IPv6 only."""
    def run(case, lab):
        scene = Scene(case, lab, mb=60, v6=True, relays_v6=relays_v6)
        sent = scene.start().finish()
        scene.check_direct(sent, 2, [path for path in scene.direct(sent) if by_v6(path)])
    return run


def ipv6_first(case, lab):
    """The same with NATs that open: both ways are used, and that of IPv6 works first."""
    scene = Scene(case, lab, CONES[2], CONES[2], mb=60, v6=True)
    sent = scene.start().finish()
    direct = scene.direct(sent)
    scene.check_direct(sent, 2)
    times = [first_active([path for path in direct if by_v6(path) == is_v6]) for is_v6 in (True, False)]
    case.check("first by IPv6, then by IPv4", times, None not in times and times[0] <= times[1], pace=None not in times)
    carried = sum(path["bytes_sent"] for path in direct if by_v6(path))
    case.check("content that took IPv6", f"{carried / 1e6:.1f} MB", carried > scene.size / 10)


def carrier(case, lab):
    """The receiver's home router is behind the NAT of its carrier."""
    scene = Scene(case, lab, CONES[2], CONES[2], mb=40, carrier=CONES[2]).start()
    scene.check_direct(scene.finish(), 2)


def stays_relayed(sender, receiver):
    """A case of NATs between which nobody can know a port: the relay carries it."""
    def run(case, lab):
        scene = Scene(case, lab, sender, receiver, mb=20).start()
        direct = scene.direct(scene.finish())
        carried = sum(path["bytes_sent"] for path in direct)
        case.check("bytes that went directly", carried, carried < 100_000)  # attempts
    return run


def one_network(case, lab):
    """Both hosts are in one private network, whose router does not lead packets for its public address back inside."""
    scene = Scene(case, lab, mb=40)
    neighbour = lab.host("neighbour")
    # A switch between the receiver, its neighbour and the router.
    switch = lab.host("switch")
    sh("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
    sh("ip", "-n", switch, "link", "set", "br0", "up")
    receiver, router = scene.homes.receiver, scene.homes.receiver_nat.host
    sh("ip", "-n", receiver, "link", "del", "eth0")
    for host, dev, place, number in ((receiver, "eth0", "192.168.2.2/24", 1), (router, LAN, "192.168.2.1/24", 2),
                                     (neighbour, "eth0", "192.168.2.3/24", 3)):
        lab.veth(host, dev, place, switch, f"s{number}", f"169.254.{number}.1/30")
        sh("ip", "-n", switch, "link", "set", f"s{number}", "master", "br0")
    for host in (receiver, neighbour):
        lab.route(host, "default", "via", "192.168.2.1")
    sent = scene.start(host=neighbour).finish(60)
    local = [path for path in sent["paths"] if path["remote"].startswith("192.168.2.2:")]
    carried = sum(path["bytes_sent"] for path in local)
    case.check("content that stayed in the network", f"{carried / 1e6:.1f} MB", carried > 20e6)


def udp_blocked(case, lab):
    """The sender's network lets no UDP out."""
    scene = Scene(case, lab, CONES[2], CONES[2], mb=1)
    nft(scene.homes.sender_nat.host, """
        table inet wall {
            chain out {
                type filter hook forward priority -10;
                meta l4proto udp drop;
            }
        }""")
    scene.start("--connect-timeout", "5 s")
    code = scene.transfer.send.wait(20)
    said = scene.transfer.send.said()
    case.check("sender's exit code", code, code == 4)
    case.check("it says what may be wrong", "UDP" in said, "UDP" in said, lambda: said)


def restart(router, number):
    """The router restarts: it has another public address, and none of its mappings."""
    # Linux drops the mappings of masquerade with the address.
    sh("ip", "-n", router.host, "addr", "flush", "dev", WAN)
    sh("ip", "-n", router.host, "addr", "add", f"198.18.{number}.3/24", "dev", WAN)
    sh("ip", "-n", router.host, "route", "replace", "default", "via", f"198.18.{number}.1")


def reboot(end, number):
    """A case in which a router loses its mappings in mid-transfer."""
    def run(case, lab):
        # Linux would keep mappings that a packet from outside made, as filtering by address alone allows.
        scene = Scene(case, lab, CONES[2], CONES[2], mb=200).start()
        scene.transfer.wait_bytes(40_000_000, 60)
        router = getattr(scene.homes, f"{end}_nat")
        at = time.monotonic()
        restart(router, number)
        sent = scene.finish()
        progress = scene.transfer.progress()
        begun = next(t for t, _ in progress)
        after = [delivered_at(progress, at + s) for s in (0, 2, 3, 5, 7)]
        case.note("delivered at 0, 2, 3, 5, 7 s", ", ".join(f"{b / 1e6:.0f} MB" for b in after))
        case.check("goes on within 2 s", mbit(8 * (after[2] - after[1])), after[2] > after[1], pace=True)
        again = [change["at_s"] for path in scene.direct(sent) for change in path["state_changes"]
                 if change["to"] == "active" and change["at_s"] > at - begun]
        case.check("direct again", again, bool(again) and min(again) < at - begun + 5, pace=True)
    return run


def relay_dies(case, lab):
    """The relay dies once a direct path carries the data."""
    scene = Scene(case, lab, CONES[2], CONES[2], mb=120).start()
    scene.transfer.wait_bytes(50_000_000, 60)
    scene.processes[0].signal(signal.SIGKILL)
    sh("ip", "-n", scene.relays.places[0][0], "link", "set", "eth0", "down")
    sent = scene.finish()
    pause = sent.get("max_delivery_gap_s") or 0
    case.check("longest pause", f"{pause:.2f} s", pause < 1.0, pace=True)


def speed(rate, mb, **homes):
    """A case of a relay of 20 Mbit/s between hosts with `rate` Mbit/s, and a file of so many megabytes."""
    def run(case, lab):
        scene = Scene(case, lab, CONES[2], CONES[2], mb=mb, rate=f"{rate}mbit", **homes)
        host, _ = scene.relays.places[0]
        sh("tc", "-n", host, "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", "20mbit", "burst", "32k", "latency", "100ms")
        scene.start()
        begin = scene.transfer.send.begin
        scene.finish()
        progress = scene.transfer.progress()
        # Later records are of the time for the disk.
        until = next(at for at, got in progress if got == scene.size)
        carries = rate * 1e6 * CONTENT_SHARE
        share = 8 * (scene.size - delivered_at(progress, begin + 3)) / (until - begin - 3) / carries
        case.measure("part of what the direct way carries from 3 s on", share * 100, "%")
        case.check("from 3 s on", f"{share:.1%} of what the direct way carries", share >= 0.9, pace=True)
    return run


CASES = {
    # The simulator has the others.
    **{f"nat-direct-{a[1]}-{b[1]}": cones(a, b) for a, b in zip(CONES, CONES)},
    "nat-direct-address-port": cones(CONES[1], CONES[2]),
    "nat-direct-symmetric-sender": symmetric(SYMMETRIC, CONES[1]),
    "nat-direct-symmetric-receiver": symmetric(CONES[1], SYMMETRIC),
    "nat-direct-symmetric-open": symmetric(SYMMETRIC, CONES[0]),
    "nat-pcp": mapped("sender", "receiver"),
    "nat-pcp-sender": mapped("sender"),
    "nat-pcp-receiver": mapped("receiver"),
    "nat-upnp": mapped("sender", "receiver", pcp=False),
    "nat-ipv6": ipv6(relays_v6=False),
    "nat-ipv6-relay": ipv6(relays_v6=True),
    "nat-ipv6-first": ipv6_first,
    "nat-direct-never": stays_relayed(SYMMETRIC, CONES[2]),
    "nat-direct-never-both": stays_relayed(SYMMETRIC, SYMMETRIC),
    "nat-direct-carrier": carrier,
    "nat-direct-one-network": one_network,
    "nat-direct-blocked": udp_blocked,
    "nat-direct-reboot-sender": reboot("sender", 1),
    "nat-direct-reboot-receiver": reboot("receiver", 2),
    "nat-direct-relay-dies": relay_dies,
    "nat-direct-speed": speed(100, 100),
    # Programs that delay 17,000 packets a second would take more of a processor than the transfer.
    "nat-big-file": speed(200, 1000, delay_ms=0),
}
