"""SCTP over IP itself (protocol 132): transfers with --ip, and what is said where it does not work."""

import re
import time

from cases import check_goodput, prepare, settings, two_hosts
from failures import FAILED, NO_PATH, expect
from namespaces import sh
from sizes import Way, check
from transfer import Transfer, check_complete, make_file

CUT = 1.5  # seconds


def check_over_ip(case, sent, count):
    """All paths had no UDP port, and each of them carried data."""
    ends = [(path["local"], path["remote"]) for path in sent.get("paths", [])]
    ports = {end.rsplit(":", 1)[1] for pair in ends for end in pair}
    case.check("paths", ends, len(ends) == count and ports == {"0"})
    idle = [path["remote"] for path in sent.get("paths", []) if not path["data_chunks_sent"]]
    case.check("paths that carried nothing", idle, not idle)


def cut_link(case, lab, a, b, source, digest, listen):
    """A transfer over two links, of which one is down for a while."""
    words = settings(case.options)
    transfer = Transfer(lab, case.options.binary, source, b, [*words, "--ip", *listen])
    transfer.start(a, *words, "--ip")
    transfer.wait_bytes(source.stat().st_size // 3, 60)
    lab.link(a, "a2", up=False)
    time.sleep(CUT)
    lab.link(a, "a2", up=True)
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    check_over_ip(case, sent, 2)
    gap = sent.get("max_delivery_gap_s") or 99
    case.check("longest pause in delivery", f"{gap:.3f} s", gap <= 1.0, pace=True)
    return sent


def over_ipv4(case, lab):
    """Two links; one is taken down at a third of the transfer, and up again."""
    source, _, digest = prepare(case, lab, 100)
    a, b = two_hosts(lab)
    for command in ("add table ip seen", "add chain ip seen out { type filter hook output priority 0 ; }",
                    "add rule ip seen out ip protocol udp counter", "add rule ip seen out ip protocol 132 counter"):
        sh("ip", "netns", "exec", a, "nft", command)
    cut_link(case, lab, a, b, source, digest, [])
    seen = sh("ip", "netns", "exec", a, "nft", "list", "ruleset")
    in_udp, over_ip = (int(count) for count in re.findall(r"counter packets (\d+)", seen))
    case.check("packets in UDP, and over IP", (in_udp, over_ip), in_udp == 0 and over_ip > 10_000)


def over_ipv6(case, lab):
    """The same over IPv6. The link that is taken down loses its addresses."""
    source, _, digest = prepare(case, lab, 100)
    a, b = lab.host("a"), lab.host("b")
    for i in (1, 2):
        lab.veth(a, f"a{i}", f"fd00:81:{i}::1/64", b, f"b{i}", f"fd00:81:{i}::2/64", "100mbit")
        for host, dev in ((a, f"a{i}"), (b, f"b{i}")):
            sh("ip", "netns", "exec", host, "sysctl", "-qw", f"net.ipv6.conf.{dev}.keep_addr_on_down=1")
    while any("tentative" in sh("ip", "-n", host, "addr") for host in (a, b)):
        time.sleep(0.05)
    cut_link(case, lab, a, b, source, digest, ["--listen", "fd00:81:1::2,fd00:81:2::2"])


def steady(case, lab):
    """Two links, nothing happens to them: as fast as over UDP."""
    source, _, digest = prepare(case, lab, 120)
    a, b = two_hosts(lab)
    words = settings(case.options)
    transfer = Transfer(lab, case.options.binary, source, b, [*words, "--ip"])
    transfer.start(a, *words, "--ip")
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    check_over_ip(case, sent, 2)
    check_goodput(case, "goodput", sent.get("goodput_bps", 0), 2)


def size(case, lab):
    """After a third the router sends packets of at most 1420 bytes, and says so by ICMP, which counts here."""
    way = Way(case, lab).forward()
    source, size_, digest = prepare(case, lab, 20)
    words = settings(case.options)
    transfer = Transfer(lab, case.options.binary, source, way.server, [*words, "--ip"])
    transfer.start(way.client, *words, "--ip")
    transfer.wait_bytes(size_ // 3, 60)
    way.says(1420)
    check(case, transfer, digest, 1420)
    told = [notice.get("reason") for notice in transfer.result(transfer.send).get("notices", [])
            if notice["event"] == "path_mtu"]
    case.check("who told the size", told, "packet_too_big" in told)


def refused(case, lab):
    """Without CAP_NET_RAW, and to a host that does not listen over IP: what is said, and at once."""
    source = lab.dir / "source.bin"
    make_file(source, 1_000_000)
    a, b = two_hosts(lab)
    words = settings(case.options)
    transfer = Transfer(lab, case.options.binary, source, b, words)
    without = ("setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw")
    transfer.start(a, *words, "--ip", prefix=without)
    transfer.send.wait(20)
    expect(case, "sender without CAP_NET_RAW", transfer.send, FAILED, "CAP_NET_RAW")
    case.check("the remedy", "setcap" in transfer.send.said(), "setcap cap_net_raw+ep" in transfer.send.said())
    begun = time.monotonic()
    transfer.start(a, *words, "--ip")
    transfer.send.wait(20)
    took = time.monotonic() - begun
    expect(case, "sender to a host without --ip", transfer.send, NO_PATH, "has no SCTP over IP")
    case.check("time until that was said", f"{took:.2f} s", took < 3, pace=True)
    transfer.start(a, *words)  # the receiver is as it was
    transfer.wait(60)
    case.check("a sender in UDP", transfer.send.code, transfer.send.code == 0, transfer.send.said)


CASES = {"raw-ip": over_ipv4, "raw-ip-v6": over_ipv6, "raw-ip-steady": steady, "raw-ip-size": size,
         "raw-ip-refused": refused}
