"""The only path becomes slow in the middle of a transfer: its rate falls, or its round trip grows. What works goes on."""

import signal
import socket
import sys
import time

import capture
from namespaces import sh, tbf
from transfer import HERE, Transfer, check_complete, make_file

GIVES_UP = 60  # seconds without a sign of life after which an end gives the other up
SLOW_FOR = 75  # seconds that the rest lasts, at least
QUEUE = 65_536  # bytes of the rest that a shaper's tokens and its queue take at once
HEARTBEATS_MAX = 0.05  # of the link
HEARTBEAT = 80  # bytes of the IP packet of an encrypted HEARTBEAT, and of its answer
BEFORE = 500_000  # bytes that arrive first


def transfer_over(case, lab, link, rest):
    """A transfer over `link(a, b)`, of which so many bytes are left when it becomes slow."""
    a, b = lab.host("a"), lab.host("b")
    change = link(a, b)
    source = lab.dir / "source.bin"
    digest = make_file(source, BEFORE + rest)
    transfer = Transfer(lab, case.options.binary, source, b)
    transfer.start(a)
    transfer.wait_bytes(BEFORE, 60)
    change()
    return transfer, digest


def goes_on(case, lab, link, rest):
    """The transfer completes long after an end would have given the other up. Returns it, and the seconds it took."""
    transfer, digest = transfer_over(case, lab, link, rest)
    since = time.monotonic()
    transfer.wait(400)
    took = time.monotonic() - since
    check_complete(case, transfer, digest)
    case.check("lasted", f"{took:.0f} s", took > GIVES_UP + 5)
    return transfer, took


def check_heartbeats(case, packets, took, rate):
    """So many packets of heartbeats are a small part of what the link at `rate` bit/s carried."""
    share = packets * HEARTBEAT * 8 / took / rate
    case.check("heartbeats' part of the link", f"{share:.1%}", share <= HEARTBEATS_MAX)


def rate_falls(rate):
    """A case: the rate falls to so many kbit/s, as a data cap does it. Heartbeats are counted that go the way of the data,
    behind the queue, which drops many of those that an end sends while it hears nothing."""
    def run(case, lab):
        captures = []

        def link(a, b):
            lab.veth(a, "a1", "10.81.1.1/24", b, "b1", "10.81.1.2/24", "2mbit")
            captures.append(lab.spawn(a, [sys.executable, str(HERE / "capture.py"), str(lab.dir / "a.pcap")]))
            captures[0].wait_line("ready", 10)

            def change():
                for host, dev in ((a, "a1"), (b, "b1")):
                    sh("tc", "-n", host, "qdisc", "replace", "dev", dev, *tbf(f"{rate}kbit"))
            return change
        _, took = goes_on(case, lab, link, int(rate * 1000 / 8 * SLOW_FOR) + QUEUE)
        captures[0].signal(signal.SIGTERM)
        captures[0].wait(10)
        packets = sum(is_heartbeat(packet, "10.81.1.1") for packet in capture.packets(lab.dir / "a.pcap"))
        case.check("heartbeats seen", packets, packets > 0)
        check_heartbeats(case, packets, took, rate * 1000)
    run.__doc__ = f"The rate falls from 2 Mbit/s to {rate} kbit/s."
    return run


def is_heartbeat(packet, source):
    """An Ethernet frame holds an IPv4 packet from `source` that is as long as a heartbeat."""
    ip = packet[14:]
    return packet[12:14] == b"\x08\x00" and ip[12:16] == socket.inet_aton(source) and int.from_bytes(ip[2:4]) == HEARTBEAT


def delay_grows(milliseconds, rest):
    """A case: the round trip grows to so many milliseconds, as from LTE to a satellite. The rest takes so many seconds
    at the full rate."""
    rate = 500  # kbit/s

    def run(case, lab):
        def link(a, b):
            wire = lab.wire(a, "a1", "10.81.1.1/24", b, "b1", "10.81.1.2/24", f"{rate}kbit", "--delay-ms", "2",
                            "--then-delay-ms", str(milliseconds / 2))
            return lambda: wire.signal(signal.SIGUSR2)
        transfer, took = goes_on(case, lab, link, int(rate * 1000 / 8 * rest))
        results = [transfer.result(process) for process in (transfer.send, transfer.recv)]
        # Each is answered by a packet as long, which goes the other way.
        sent = sum(path["heartbeats_sent"] for result in results for path in result.get("paths", []))
        check_heartbeats(case, sent, took, rate * 1000)
    run.__doc__ = f"The round trip grows from 4 ms to {milliseconds} ms."
    return run


CASES = {
    "slow-64k": rate_falls(64),
    "slow-9600": rate_falls(9.6),
    "slow-800ms": delay_grows(800, SLOW_FOR),
    "slow-2400ms": delay_grows(2400, SLOW_FOR * 2 / 3),  # its window takes some 20 s to grow, at least
}
