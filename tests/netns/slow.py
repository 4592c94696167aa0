"""The only path becomes slow in the middle of a transfer: its rate falls, or its round trip grows. What works goes on."""

import signal
import sys
import time

from lab import HERE, sh, tbf
from transfer import Transfer, check_complete, make_file

GIVES_UP = 60  # seconds without a sign of life after which an end gives the other up
SLOW_FOR = 75  # seconds that the rest lasts, at least
QUEUE = 65_536  # bytes of the rest that a shaper's tokens and its queue take at once
HEARTBEATS_MAX = 0.05  # of the link
# bit/s below which the queue hides the peer for half a minute. Meanwhile an end asks every 100 ms, and the full queue
# drops most of that.
HIDES_THE_PEER = 10_000
HEARTBEAT = 60 + 48  # bytes of the IP packet of a HEARTBEAT that is encrypted
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


def goes_on(case, lab, link, rest, rate):
    """The transfer completes long after an end would have given the other up. `rate` is that of the slow link, in bit/s."""
    transfer, digest = transfer_over(case, lab, link, rest)
    since = time.monotonic()
    transfer.wait(400)
    took = time.monotonic() - since
    check_complete(case, transfer, digest)
    case.check("lasted", f"{took:.0f} s", took > GIVES_UP + 5)
    ends = [transfer.result(process) for process in (transfer.send, transfer.recv)]
    # Each is answered by a packet as long, which goes the other way.
    sent = sum(path["heartbeats_sent"] for end in ends for path in end.get("paths", []))
    share = sent * HEARTBEAT * 8 / took / rate
    what = "heartbeats' part of the link, each way"
    if rate < HIDES_THE_PEER:
        case.note(what, f"{share:.1%}")
    else:
        case.check(what, f"{share:.1%}", share <= HEARTBEATS_MAX)


def rate_falls(rate):
    """A case: the rate falls to so many kbit/s, as a data cap does it."""
    def run(case, lab):
        def link(a, b):
            lab.veth(a, "a1", "10.81.1.1/24", b, "b1", "10.81.1.2/24", "2mbit")

            def change():
                for host, dev in ((a, "a1"), (b, "b1")):
                    sh("tc", "-n", host, "qdisc", "replace", "dev", dev, *tbf(f"{rate}kbit"))
            return change
        goes_on(case, lab, link, int(rate * 1000 / 8 * SLOW_FOR) + QUEUE, rate * 1000)
    run.__doc__ = f"The rate falls from 2 Mbit/s to {rate} kbit/s."
    return run


def delay_grows(milliseconds, rest):
    """A case: the round trip grows to so many milliseconds, as from LTE to a satellite. The rest takes so many seconds
    at the full rate."""
    rate = 500  # kbit/s

    def run(case, lab):
        def link(a, b):
            wire = lab.wire(a, "a1", "10.81.1.1/24", b, "b1", "10.81.1.2/24", f"{rate}kbit", "--delay-ms", "2",
                            "--then-delay-ms", str(milliseconds / 2))
            return lambda: wire.signal(signal.SIGUSR2)
        goes_on(case, lab, link, int(rate * 1000 / 8 * rest), rate * 1000)
    run.__doc__ = f"The round trip grows from 4 ms to {milliseconds} ms."
    return run


CASES = {
    "slow-64k": rate_falls(64),
    "slow-9600": rate_falls(9.6),
    "slow-800ms": delay_grows(800, SLOW_FOR),
    "slow-2400ms": delay_grows(2400, SLOW_FOR / 2),  # its window takes a minute to grow
}
