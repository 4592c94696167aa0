"""Transfers of hosts with several uplinks, without any option: every uplink that leads to the other end is used."""

import ipaddress
import json
import os
import statistics
import sys
import time
from pathlib import Path

import capture
from cases import prepare
from failure import Failed
from laptop import GOODPUT_MIN, RATES, SERVER, SUM, Laptop, Uplink
from namespaces import sh
from transfer import HERE, Transfer, check_complete, make_file, mbit, sha256_of

# A lone uplink may cost this much more time with the default than when it is named.
LONE_MAX, LONE_RUNS = 0.020, 15
# After this time nothing that was sent before a change of routes is on its way any more.
SETTLE_S = 2.0
# Of a backup, bytes that heartbeats and the handshake take.
IDLE_MAX = 200_000


class Capture:
    """All packets of all interfaces of a host, from now on."""

    def __init__(self, lab, host):
        self.file = lab.dir / f"{host}.pcap"
        self.process = lab.spawn(host, [sys.executable, str(HERE / "capture.py"), str(self.file)])
        self.process.wait_line("ready", 10)

    def stop(self):
        """Ends it; the packets."""
        self.process.stop(10)
        return capture.packets(self.file)


def dead_end(net):
    """A third interface of the laptop, eth9: up, with an address, but without a route to anywhere. The
    capture of what arrives at its other end."""
    end = net.lab.host("end")
    net.link(net.laptop, "eth9", "192.168.99.2/24", end, "lan", "192.168.99.1/24")
    return Capture(net.lab, end)


def of_manypath(packet):
    """True for a packet that no kernel sends of itself: IPv4, ARP, and UDP over IPv6."""
    kind = packet[12:14]
    return kind in (b"\x08\x00", b"\x08\x06") or kind == b"\x86\xdd" and packet[20] == 17


def to_server(packet):
    """True for an IPv4 packet to the server."""
    return packet[12:14] == b"\x08\x00" and packet[30:34] == ipaddress.ip_address(SERVER).packed


def begin(case, net, mb=None, listen=()):
    """A transfer from the laptop to the server without an option; the directory is made by the receiver."""
    source, _, digest = prepare(case, net.lab, mb or 120)
    transfer = Transfer(net.lab, case.options.binary, source, net.server, listen, new_dir=True)
    return transfer, digest


def check_rate(case, bits_per_second, least=GOODPUT_MIN):
    """Goodput against the sum of the uplinks' rates."""
    share = bits_per_second / SUM
    case.measure("part of the uplinks' rates", share * 100, "%")
    case.check("goodput", f"{mbit(bits_per_second)}, {share:.1%} of the uplinks' rates", share >= least, pace=True)


def run(case, net, listen=(), mb=None, least=GOODPUT_MIN):
    """A transfer that must use both uplinks."""
    transfer, digest = begin(case, net, mb, listen)
    transfer.start(net.laptop)
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    case.note("messages", transfer.send.said() or "none")
    check_rate(case, sent.get("goodput_bps", 0), least)
    check_parts(case, net)
    return transfer


def check_parts(case, net):
    """Each uplink carried at least half of what its rate gives it."""
    sent = {uplink.dev: net.lab.sent_bytes(net.laptop, uplink.dev) for uplink in net.uplinks}
    for dev, count in sent.items():
        least = 0.5 * sum(sent.values()) * RATES[dev] / sum(RATES[dev] for dev in sent)
        case.check(f"{dev} carried its part", f"{count / 1e6:.1f} MB", count >= least)


def default(case, lab):
    """Two uplinks, nothing else."""
    run(case, Laptop(lab))


def loose(case, lab):
    """The same with loose reverse-path filtering (RFC 3704), as some distributions have it."""
    run(case, Laptop(lab, rp_filter=2))


def docker(case, lab):
    """The server also has a bridge for containers."""
    net = Laptop(lab)
    net.bridge()
    run(case, net)


def unreached(case, lab):
    """The ticket lists that bridge before the address that the laptop reaches: the pair that does not answer is
    replaced within about a second, of the faster uplink here."""
    net = Laptop(lab)
    net.bridge()
    transfer = run(case, net, ("--listen", f"172.17.0.1,{SERVER}"), mb=180, least=0.85)
    check_said(case, transfer, "no answer from 172.17.0.1")


def second_address(case, lab):
    """The server has another address, which nobody reaches."""
    net = Laptop(lab)
    net.second_address("eth1", "192.168.77.1/24")
    run(case, net)


def both_families(case, lab):
    """IPv6 beside IPv4 everywhere."""
    run(case, Laptop(lab, v6=True))


def third(case, lab):
    """The laptop has a third interface, from which no route leads to the server."""
    net = Laptop(lab)
    seen = dead_end(net)
    run(case, net)
    stray = sum(of_manypath(packet) for packet in seen.stop())
    case.check("packets through the interface without a route", stray, stray == 0)


class Tunnel:
    """A virtual private network: an interface of the laptop whose packets go through wlan0 to a server that sends them on."""

    def __init__(self, net, dev, mark=0):
        self.net, self.dev, lab = net, dev, net.lab
        self.far = lab.host("vpn")
        net.router(self.far)
        net.link(net.core, "c8", "198.51.100.1/24", self.far, "eth0", "198.51.100.5/24")
        lab.route(self.far, "default", "via", "198.51.100.1")
        lab.route(net.core, "10.8.0.0/24", "via", "198.51.100.5")
        program = [sys.executable, str(HERE / "tunnel.py")]
        near = f"{net.uplinks[0].address(2)}:1194"
        for host, words in ((self.far, [dev, "198.51.100.5:1194", near]), (net.laptop, [dev, near, "198.51.100.5:1194", mark])):
            lab.spawn(host, [*program, *map(str, words)]).wait_line("ready", 10)
        for host, address in ((self.far, "10.8.0.1/24"), (net.laptop, "10.8.0.2/24")):
            sh("ip", "-n", host, "link", "set", dev, "mtu", "1400")
            lab.configure(host, dev, address)

    def as_openvpn(self):
        """Everything goes there, by two routes that are longer than the default one."""
        router = self.net.uplinks[0].address(1)
        self.net.lab.route(self.net.laptop, "198.51.100.5", "via", router, "dev", "wlan0")
        for half in ("0.0.0.0/1", "128.0.0.0/1"):
            self.net.lab.route(self.net.laptop, half, "dev", self.dev)

    def as_wg_quick(self, mark):
        """Everything goes there but what has the mark, by a rule."""
        lab, laptop = self.net.lab, self.net.laptop
        lab.route(laptop, "default", "dev", self.dev, "table", str(mark))
        lab.rule(laptop, "not", "fwmark", str(mark), "table", str(mark))
        lab.rule(laptop, "table", "main", "suppress_prefixlength", "0")


def tunnelled(case, net, tunnel):
    """A transfer through a tunnel, beside which nothing leaves."""
    seen = [Capture(net.lab, uplink.gate) for uplink in net.uplinks]
    transfer, digest = begin(case, net, 10)
    transfer.start(net.laptop)
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    locals_ = sorted({path["local"].rsplit(":", 1)[0] for path in sent.get("paths", [])})
    case.check("addresses of the laptop that are used", locals_, locals_ == ["10.8.0.2"])
    for uplink, capture_ in zip(net.uplinks, seen):
        beside = sum(to_server(packet) for packet in capture_.stop())
        case.check(f"packets through {uplink.dev} beside the tunnel", beside, beside == 0)
    check_said(case, transfer, tunnel.dev, "tunnel")


def check_said(case, transfer, *words):
    """One line on standard error has all the words."""
    lines = [line for line in transfer.send.said().splitlines() if all(word in line for word in words)]
    case.check(f"lines that say so, with {' and '.join(words)}", lines or transfer.send.said(), len(lines) == 1)


def tunnel_by_routes(case, lab):
    """The system's route to the server leaves through a tunnel, as OpenVPN does it."""
    net = Laptop(lab)
    tunnel = Tunnel(net, "tun0")
    tunnel.as_openvpn()
    tunnelled(case, net, tunnel)


def tunnel_by_rule(case, lab):
    """The same by a rule and a table, as wg-quick does it."""
    net, mark = Laptop(lab), 51820
    tunnel = Tunnel(net, "wg0", mark)
    tunnel.as_wg_quick(mark)
    tunnelled(case, net, tunnel)


def tunnel_comes(case, lab):
    """The tunnel is there from the beginning, and the system's route leads there after a third of the transfer: from
    then on nothing leaves beside it."""
    net = Laptop(lab)
    tunnel = Tunnel(net, "tun0")
    transfer, digest = begin(case, net, 90)
    transfer.start(net.laptop)
    transfer.wait_bytes(30_000_000, 60)
    tunnel.as_openvpn()
    # Packets that were on their way, and the first probes.
    time.sleep(SETTLE_S)
    seen = [Capture(net.lab, uplink.gate) for uplink in net.uplinks]
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    chunks = {path["local"].rsplit(":", 1)[0]: path["data_chunks_sent"] for path in sent.get("paths", [])}
    # The server goes on asking the addresses that it knows: none of them becomes a path again.
    is_alone = list(chunks) == ["10.8.0.2"] and chunks["10.8.0.2"] > 1000
    case.check("chunks by the addresses of the laptop that are left", chunks, is_alone)
    for uplink, capture_ in zip(net.uplinks, seen):
        beside = sum(to_server(packet) for packet in capture_.stop())
        case.check(f"packets through {uplink.dev} beside the tunnel", beside, beside == 0)


def uplink_comes(case, lab):
    """The second uplink is plugged in after a third of the transfer, and carries its part from then on."""
    net = Laptop(lab, uplinks=["wlan0"])
    transfer, digest = begin(case, net, 150)
    transfer.start(net.laptop)
    transfer.wait_bytes(50_000_000, 60)
    net.uplinks.append(Uplink("lte0", 2, 600))
    net.connect(net.uplinks[-1])
    transfer.wait(120)
    check_complete(case, transfer, digest)
    late = lab.sent_bytes(net.laptop, "lte0")
    # 100 MB at 110 Mbit/s last 7.3 s, of which lte0 has at least five.
    least = 0.7 * 5 * RATES["lte0"] * 1e6 / 8
    case.check("bytes through the uplink that came", late, late >= least, pace=True)


def with_nmcli(lab, metered):
    """Words that run a command where NetworkManager's nmcli calls a device metered. It stands in for a NetworkManager,
    which would configure the hosts itself, and prints what that one does."""
    folder = lab.dir / "bin"
    folder.mkdir()
    program = folder / "nmcli"
    program.write_text(NMCLI.format(metered=metered))
    program.chmod(0o755)
    return ["env", f"PATH={folder}:{os.environ['PATH']}"]


NMCLI = """#!/bin/sh
case "$*" in
    *"device show"*) ;;
    *) echo "Error: unexpected: $*" >&2; exit 2 ;;
esac
for device in $(ls /sys/class/net); do
    case $device in {metered}) is="yes (guessed)" ;; *) is="no (guessed)" ;; esac
    printf 'GENERAL.DEVICE:%s\\nGENERAL.IP-IFACE:%s\\nGENERAL.METERED:%s\\n\\n' "$device" "$device" "$is"
done
"""


def metered(case, lab):
    """The system calls lte0 metered: a backup, unless it is named."""
    net = Laptop(lab)
    transfer, digest = begin(case, net, 60)
    transfer.start(net.laptop, prefix=with_nmcli(lab, "lte0"))
    transfer.wait_bytes(20_000_000, 60)
    idle = lab.sent_bytes(net.laptop, "lte0")
    case.check("bytes through lte0 while wlan0 works", idle, idle < IDLE_MAX)
    lab.link(net.laptop, "wlan0", up=False)
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    gap = sent.get("max_delivery_gap_s") or 99
    case.check("longest pause as wlan0 fails", f"{gap:.2f} s", gap <= 2, pace=True)
    ranks = {path["local"].rsplit(":", 1)[0]: path["rank"] for path in sent.get("paths", [])}
    case.check("rank of lte0", ranks, ranks.get(net.uplinks[1].address(2)) == "backup")
    check_said(case, transfer, "lte0", "metered")


def metered_named(case, lab):
    """The same with lte0 named: both are used."""
    net = Laptop(lab)
    transfer, digest = begin(case, net)
    transfer.start(net.laptop, "--bind", "wlan0,lte0", prefix=with_nmcli(lab, "lte0"))
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    check_rate(case, sent.get("goodput_bps", 0))
    check_parts(case, net)


def lone(case, lab):
    """A lone uplink beside an interface without a route: nothing is sent there, and the start takes no longer."""
    net = Laptop(lab, uplinks=["wlan0"])
    seen = dead_end(net)
    source = lab.dir / "small.bin"
    make_file(source, 1000)
    words = [case.options.binary, "recv", "--json", "--dir", str(lab.dir / "received")]
    receiver = lab.spawn(net.server, words)
    ticket = json.loads(receiver.wait_line('"listening"', 20))["ticket"]

    def start(*options):
        target = lab.dir / "received" / source.name
        process = lab.spawn(net.laptop, [case.options.binary, "send", "--json", *options, str(source), ticket])
        process.wait(20)
        target.unlink(missing_ok=True)
        if process.code != 0:
            raise Failed(f"exit code {process.code}: {process.said()}")
        return process.ended - process.begin

    pairs = [(start(), start("--bind", "wlan0")) for _ in range(LONE_RUNS)]
    more = statistics.median(default - named for default, named in pairs)
    case.measure("the default takes longer by", more * 1e3, "ms")
    case.measure("with the uplink named", statistics.median(named for _, named in pairs) * 1e3, "ms")
    case.check("the default takes longer by", f"{more * 1e3:.1f} ms", more <= LONE_MAX, pace=True)
    stray = sum(of_manypath(packet) for packet in seen.stop())
    case.check("packets through the interface without a route", stray, stray == 0)


def perf(case, lab):
    """`perf client` in both directions."""
    net = Laptop(lab)
    server = lab.spawn(net.server, [case.options.binary, "perf", "server"])
    time.sleep(0.5)
    for what, more in (("towards the server", []), ("towards the laptop", ["-R"])):
        client = lab.spawn(net.laptop, [case.options.binary, "perf", "client", SERVER, "-t", "6", "--json", *more])
        code = client.wait(30)
        case.check(f"{what}: exit code", code, code == 0, client.said)
        result = json.loads("\n".join(line for _, line in client.stdout) or "{}")
        case.note("direction", what)
        check_rate(case, result.get("goodput_bps", 0))
    case.check("the server runs", server.poll(), server.poll() is None, server.said)


def proxy(case, lab):
    """A download through `proxy connect`."""
    net = Laptop(lab)
    secret, size = lab.dir / "secret", 100_000_000
    secret.write_text("a-secret-of-the-tests\n")
    secret.chmod(0o600)
    make_file(lab.dir / "page", size)
    lab.spawn(net.server, [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(lab.dir), "8080"])
    key = lab.dir / "far.key"
    lab.spawn(net.server, [case.options.binary, "proxy", "listen", "--identity", str(key), "--token-file", str(secret)])
    until = time.monotonic() + 10
    while not key.exists() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.3)
    near = lab.spawn(net.laptop, [case.options.binary, "proxy", "connect", SERVER, "--token-file", str(secret), "--json",
                                  "-L", "9080:127.0.0.1:8080"])
    near.wait_line('"ready"', 20)
    download = lab.spawn(net.laptop, [sys.executable, str(HERE / "download.py"), "http://127.0.0.1:9080/page"])
    download.wait(60)
    got = json.loads(download.stdout[-1][1]) if download.stdout else {}
    case.check("bytes", got.get("bytes"), got.get("bytes") == size, download.said)
    check_rate(case, got.get("bps", 0))


def example(case, lab):
    """The example of the Rust library, which names no address of its own."""
    program = Path(case.options.binary).parent / "examples" / "file"
    case.check("the example is built", str(program), program.exists() or not case.options.require)
    if not program.exists():
        case.note("left out", "cargo build -p manypath --example file")
        return
    net = Laptop(lab)
    source, size = lab.dir / "source.bin", 120_000_000
    digest = make_file(source, size)
    receiver = lab.spawn(net.server, [str(program), "recv", str(lab.dir / "copy.bin")])
    addresses = receiver.wait_line("listening on ", 20).removeprefix("listening on ")
    key = receiver.wait_line("key ", 20).removeprefix("key ")
    sender = lab.spawn(net.laptop, [str(program), "send", str(source), key, addresses])
    for process in (sender, receiver):
        code = process.wait(60)
        case.check("exit code", code, code == 0, process.said)
    same = sha256_of(lab.dir / "copy.bin") == digest
    case.check("the file is the same", same, same)
    case.note("it said", "; ".join(line for _, line in sender.stdout))
    check_rate(case, size * 8 / (sender.ended - sender.begin))
    check_parts(case, net)


CASES = {
    "default-uplinks": default,
    "default-uplinks-loose": loose,
    "default-uplinks-docker": docker,
    "default-uplinks-unreached": unreached,
    "default-uplinks-second-address": second_address,
    "default-uplinks-v6": both_families,
    "default-uplinks-third": third,
    "default-uplinks-perf": perf,
    "default-uplinks-proxy": proxy,
    "default-uplinks-example": example,
    "default-tunnel": tunnel_by_routes,
    "default-tunnel-rule": tunnel_by_rule,
    "default-tunnel-comes": tunnel_comes,
    "default-uplink-comes": uplink_comes,
    "default-metered": metered,
    "default-metered-named": metered_named,
    "default-lone": lone,
}
