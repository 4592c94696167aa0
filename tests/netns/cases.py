"""Transfers that must succeed."""

import signal
import time

from failure import Failed
from namespaces import sh
from transfer import CONTENT_SHARE, Transfer, check_complete, delivered_at, make_file, mbit

RATE = 100e6  # bit/s of each link, as tbf counts them
GOODPUT_MIN = 0.9  # of the sum of the links' rates


def settings(options):
    """The settings that the user wants on both sides."""
    return [word for setting in options.set for word in ("--set", setting)]


def prepare(case, lab, mb):
    """The file to send and its digest; `mb` unless the user chose."""
    size = (case.options.size or mb) * 1_000_000
    source = lab.dir / "source.bin"
    return source, size, make_file(source, size)


def two_hosts(lab, rate="100mbit"):
    """Two hosts with two shaped links."""
    a, b = lab.host("a"), lab.host("b")
    for i in (1, 2):
        lab.veth(a, f"a{i}", f"10.81.{i}.1/24", b, f"b{i}", f"10.81.{i}.2/24", rate)
    return a, b


def run_through(case, lab, mb, sender, receiver):
    """Sends a file to its end; the sender's result."""
    source, _, digest = prepare(case, lab, mb)
    transfer = Transfer(lab, case.options.binary, source, receiver, settings(case.options))
    transfer.start(sender, *settings(case.options))
    transfer.wait(120)
    return check_complete(case, transfer, digest)


def check_goodput(case, what, bits_per_second, links, least=GOODPUT_MIN):
    """Goodput against the rate of so many links of 100 Mbit/s."""
    share = bits_per_second / (RATE * links)
    case.check(what, f"{mbit(bits_per_second)}, {share:.1%} of the links' rate", share >= least,
               pace=True)


def steady(case, lab):
    """Two links, nothing happens to them."""
    a, b = two_hosts(lab)
    sent = run_through(case, lab, 1000 if case.options.full else 120, a, b)
    check_goodput(case, "goodput", sent.get("goodput_bps", 0), 2)


def outage(case, lab):
    """Two links; one is taken down at a third of the transfer, and up again."""
    full = case.options.full
    source, size, digest = prepare(case, lab, 1000 if full else 240)
    seconds = case.options.outage or (3 if full else 2)
    a, b = two_hosts(lab)
    transfer = Transfer(lab, case.options.binary, source, b, settings(case.options))
    transfer.start(a, *settings(case.options))
    down = transfer.wait_bytes(size // 3, 60)
    lab.link(a, "a2", up=False)
    case.check("no file under the final name yet", transfer.stored(), source.name not in transfer.stored())
    time.sleep(seconds)
    lab.link(a, "a2", up=True)
    up = time.monotonic()
    transfer.wait(180)
    sent = check_complete(case, transfer, digest)
    gap = sent.get("max_delivery_gap_s") or 99
    case.check("longest pause in delivery", f"{gap:.3f} s", gap <= 1.0, pace=True)
    judge_outage(case, transfer.progress(), sent, size, down, up)


def judge_outage(case, progress, sent, size, down, up):
    """Goodput while both links were up, while one was, and over all, against the ideal."""
    end = next(at for at, got in progress if got == size)
    begin = end - sent["transfer_time_s"]
    at_down, at_up = delivered_at(progress, down), delivered_at(progress, up)
    both = (at_down + size - at_up) * 8 / (end - begin - (up - down))
    check_goodput(case, "goodput while both links were up", both, 2)
    case.note("goodput while one link was up", mbit((at_up - at_down) * 8 / (up - down)))
    ideal = size * 8 / (RATE * CONTENT_SHARE) / 2 + (up - down) / 2
    rates = [mbit(8 * (delivered_at(progress, up + t + 0.25) - delivered_at(progress, up + t)) / 0.25)
             for t in (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5)]
    case.note("goodput in the quarters of a second once it was up again", ", ".join(rates))
    case.note("time", f"{sent['transfer_time_s']:.2f} s; at the links' full rate {ideal:.2f} s")
    case.note("goodput over all", f"{mbit(sent['goodput_bps'])}, ideal {mbit(size * 8 / ideal)}")


def backup(case, lab):
    """Two links, the second one a backup; the first one is taken down for two seconds."""
    # Long enough for a kernel that takes the link down seconds after it was told to, beside other work.
    source, size, digest = prepare(case, lab, 150)
    a, b = two_hosts(lab)
    transfer = Transfer(lab, case.options.binary, source, b, settings(case.options))
    transfer.start(a, *settings(case.options), "--bind", "a1,a2:backup")
    down = transfer.wait_bytes(size // 6, 60)
    lab.link(a, "a1", up=False)
    time.sleep(2)
    lab.link(a, "a1", up=True)
    up = time.monotonic()
    transfer.wait(60)
    sent = check_complete(case, transfer, digest)
    gap = sent.get("max_delivery_gap_s") or 99
    case.check("longest pause in delivery", f"{gap:.3f} s", gap <= 1.0, pace=True)
    on_backup = sum(path["bytes_sent"] for path in sent.get("paths", []) if path["rank"] == "backup")
    # A second until the path is found to work again; and Linux may need one to bring the link up.
    most = RATE / 8 * (up - down + 2)
    case.check("bytes on the backup", f"{on_backup / 1e6:.1f} MB, at most {most / 1e6:.1f} MB",
               RATE / 8 <= on_backup <= most)
    told = [notice["reason"] for notice in sent.get("notices", [])
            if notice["event"] in ("path_suppressed", "path_restored")]
    case.check("what was told of it", told, told == ["failover", "dearer"])
    check_goodput(case, "goodput", sent.get("goodput_bps", 0), 0.9)


def verdict(case, lab):
    """One link of two dies for good, with timers of seconds: the receiver's last words must find the other one."""
    source, size, digest = prepare(case, lab, 60)
    # The profile's send buffer of 64 MiB would take the whole file, and with it all the memory that is allowed.
    words = [*settings(case.options), "--preset", "cmt", "--profile", "2006", "--set", "send_buffer=8MiB"]
    a, b = two_hosts(lab)
    # The receiver's heartbeats back the RTO of its path off, meanwhile; the sender gives its own up within seconds.
    transfer = Transfer(lab, case.options.binary, source, b, [*words, "--set", "hb_interval=2s"])
    transfer.start(a, *words, "--set", "path_max_retrans=2")
    transfer.wait_bytes(size * 2 // 3, 60)
    lab.link(a, "a2", up=False)
    transfer.wait(180)
    check_complete(case, transfer, digest)


def delayed(case, lab):
    """Two links, the second with a round trip of 30 ms more."""
    a, b = lab.host("a"), lab.host("b")
    lab.veth(a, "a1", "10.81.1.1/24", b, "b1", "10.81.1.2/24", "100mbit")
    lab.wire(a, "a2", "10.81.2.1/24", b, "b2", "10.81.2.2/24", "100mbit", "--delay-ms", "15")
    sent = run_through(case, lab, 160, a, b)
    # 0.90 less the share of encryption. It was 0.900 to 0.908 in ten runs: the near link is used less
    # than beside an equal one. Whoever mends that raises it.
    check_goodput(case, "goodput", sent.get("goodput_bps", 0), 2, least=0.88)


def lossy(case, lab):
    """Two links, one of which loses 1 % of the packets each way: it carries what loss-based congestion
    control can, and does not hold the other back."""
    a, b = lab.host("a"), lab.host("b")
    lab.veth(a, "a1", "10.81.1.1/24", b, "b1", "10.81.1.2/24", "100mbit")
    lab.wire(a, "a2", "10.81.2.1/24", b, "b2", "10.81.2.2/24", "100mbit", "--delay-ms", "10", "--loss", "0.01")
    sent = run_through(case, lab, 60, a, b)
    check_goodput(case, "goodput, against the good link alone", sent.get("goodput_bps", 0), 1)


def two_uplinks(lab):
    """A client with two uplinks, a router, a server with one address."""
    client, router, server = lab.host("client"), lab.host("router"), lab.host("server")
    for i in (1, 2):
        lab.veth(client, f"up{i}", f"10.82.{i}.1/24", router, f"r{i}", f"10.82.{i}.254/24", "50mbit")
    lab.veth(router, "r0", "10.82.0.254/24", server, "s0", "10.82.0.1/24")
    lab.forward(router)
    lab.route(server, "10.82.0.0/16", "via", "10.82.0.254")
    return client, server


def uplinks(case, lab):
    """A client with two uplinks reaches a server with one address over both; routes by source address."""
    client, server = two_uplinks(lab)
    for i in (1, 2):
        lab.route(client, "default", "via", f"10.82.{i}.254", "table", str(100 + i))
        lab.rule(client, "from", f"10.82.{i}.1", "lookup", str(100 + i))
    lab.route(client, "default", "via", "10.82.1.254")
    both_carry(case, lab, client, server, ["--bind", "10.82.1.1,10.82.2.1"])


def interfaces(case, lab):
    """The same by the names of interfaces: no policy routing, each socket keeps to its device."""
    client, server = two_uplinks(lab)
    lab.route(client, "default", "via", "10.82.1.254", "metric", "1")
    lab.route(client, "default", "via", "10.82.2.254", "metric", "2")
    both_carry(case, lab, client, server, ["--bind", "up1,up2"])


def both_carry(case, lab, client, server, bind):
    """A transfer from the client, in which each uplink must have its part."""
    source, _, digest = prepare(case, lab, 40)
    transfer = Transfer(lab, case.options.binary, source, server, settings(case.options))
    case.check("the server's addresses", transfer.listening["addresses"],
               transfer.listening["addresses"] == ["10.82.0.1"])
    transfer.start(client, *bind, *settings(case.options))
    transfer.wait(60)
    sent = check_complete(case, transfer, digest)
    carried = [lab.sent_bytes(client, dev) for dev in ("up1", "up2")]
    share = min(carried) / max(1, sum(carried))
    case.check("least share of an uplink", f"{share:.0%}", share >= 1 / 3)
    check_goodput(case, "goodput", sent.get("goodput_bps", 0), 1)  # 50 Mbit/s each


def nat(case, lab):
    """One of two uplinks is behind address translation that gives the flow a new port, twice."""
    client, server = lab.host("client"), lab.host("server")
    lab.veth(client, "up1", "10.83.1.1/24", server, "s1", "10.83.1.2/24", "50mbit")
    router = lab.wire(client, "up2", "10.83.2.1/24", server, "s2", "10.83.3.1/24", "50mbit", "--nat", "10.83.3.2")
    lab.route(client, "10.83.3.0/24", "dev", "up2")
    rebinding(case, lab, client, server, router, 2)


def nat_only(case, lab):
    """The only path is behind such address translation."""
    client, server = lab.host("client"), lab.host("server")
    router = lab.wire(client, "up1", "10.83.2.1/24", server, "s1", "10.83.3.1/24", "50mbit", "--nat", "10.83.3.2")
    lab.route(client, "10.83.3.0/24", "dev", "up1")
    rebinding(case, lab, client, server, router, 1)


def rebinding(case, lab, client, server, router, paths):
    """A transfer during which the router forgets its table twice."""
    source, size, digest = prepare(case, lab, 30 * paths)
    transfer = Transfer(lab, case.options.binary, source, server, settings(case.options))
    transfer.start(client, *settings(case.options))
    for third in (1, 2):
        transfer.wait_bytes(size * third // 3, 60)
        router.signal(signal.SIGUSR1)
    transfer.wait(60)
    sent = check_complete(case, transfer, digest)
    gap = sent.get("max_delivery_gap_s") or 99
    case.check("longest pause in delivery", f"{gap:.3f} s", gap <= 1.0, pace=True)
    share = sent.get("goodput_bps", 0) / (50e6 * paths)
    case.check("goodput", f"{share:.1%} of the links' rate", share >= 0.8, pace=True)


def link_local(case, lab):
    """Two links whose hosts have no address but the link-local ones of IPv6; one is down for 2 s after a third."""
    a, b = lab.host("a"), lab.host("b")
    for i in (1, 2):
        lab.veth(a, f"a{i}", f"fe80::{i}:1/64", b, f"b{i}", f"fe80::{i}:2/64", "100mbit")
    source, size, digest = prepare(case, lab, 60)
    token = ("--token", "between neighbours")
    transfer = Transfer(lab, case.options.binary, source, b, [*settings(case.options), *token])
    for host in (a, b):
        settle_ipv6(lab, host)
    transfer.start(a, *settings(case.options), *token, dest=f"fe80::1:2%a1,[fe80::2:2%a2]:{transfer.listening['port']}")
    transfer.wait_bytes(size // 3, 60)
    lab.link(a, "a2", up=False)
    time.sleep(2)
    lab.link(a, "a2", up=True)
    transfer.wait(60)
    sent = check_complete(case, transfer, digest)
    # The system chooses between the link-local addresses of a1, and forgets those given when a link is down.
    ways = [(path["local"][:6], path["remote"].rsplit("%", 1)[0]) for path in sent["paths"]]
    case.check("a path on each link", ways, ways == [("[fe80:", f"[fe80::{i}:2") for i in (1, 2)])
    shares = [path["bytes_sent"] / size for path in sent["paths"]]
    case.check("both carried data", shares, min(shares) > 0.1)


def settle_ipv6(lab, host):
    """Waits until no address of a host is tentative (RFC 4862, section 5.4)."""
    lab.settle(host)
    until = time.monotonic() + 10
    while "tentative" in sh("ip", "-n", host, "-6", "addr"):
        if time.monotonic() > until:
            raise Failed(f"an address of {host} stays tentative")
        time.sleep(0.05)


CASES = {
    "two-links": steady,
    "link-local": link_local,
    "outage": outage,
    "backup": backup,
    "verdict": verdict,
    "delayed": delayed,
    "lossy": lossy,
    "uplinks": uplinks,
    "interfaces": interfaces,
    "nat": nat,
    "nat-only": nat_only,
}
