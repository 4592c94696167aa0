"""Transfers through a relay that tampers: encrypted ones arrive, plain ones show that it matters."""

import concurrent.futures
import random
import struct
import time

import records as r
from relay import TO_RECEIVER, Plan, Relay
from tamper import CHANCES, INJECTED, Tamper
from transfer import Transfer

RATE = 40e6  # of each of the two paths, in bit/s
CONTENT = 0.94  # of what a link carries, at most
SHARE_MIN = 0.9  # of the goodput without tampering
CONTROL_BYTES = 3_000_000
NOT_AUTHORISED = 5
# Times that each kind is injected at least, when there are datagrams enough.
EACH_MIN = 5


def run(case, directory, name, plan, size, insecure=False):
    """A transfer through a plan: exit codes, whether the file arrived, goodput in Mbit/s, and the transfer."""
    part = directory / name
    part.mkdir()
    with Transfer(case.options, part, size, insecure=insecure) as transfer:
        with Relay(transfer.targets, plan, rate=RATE) as relay:
            plan.relay = relay
            transfer.start(relay.dest)
            codes = transfer.wait(15 + 3 * 8 * size / (2 * RATE))
            case.check(f"{name}: the relay went on", relay.failure, relay.failure is None)
            result = next((record for record in reversed(transfer.send.records) if "completed" in record), {})
            goodput = (result.get("goodput_bps") or 0) / 1e6
            return codes, transfer.arrived(), goodput, transfer


def size_of(seconds):
    """Bytes that the two links carry in this time."""
    return int(2 * RATE / 8 * CONTENT * seconds)


def tamper(case, directory):
    """Everything that Tamper does, in both directions of both paths, all of the time."""
    codes, arrived, alone, transfer = run(case, directory, "alone", Plan(), size_of(min(4, case.options.seconds)))
    case.check("without tampering: exit codes, and the file arrived", (codes, arrived), codes == (0, 0) and arrived,
               transfer.send.said() + transfer.recv.said())
    plan = Tamper(case.options.seed)
    codes, arrived, goodput, transfer = run(case, directory, "tampered", plan, size_of(case.options.seconds))
    said = transfer.send.said() + "\n" + transfer.recv.said()
    case.check("exit codes", codes, codes == (0, 0), said)
    case.check("the file arrived unchanged", arrived, arrived)
    share = goodput / alone if alone else 0
    case.check("goodput", f"{goodput:.1f} Mbit/s, {share:.1%} of {alone:.1f} Mbit/s without", share >= SHARE_MIN, said,
               pace=True)
    many = case.options.seconds >= 5
    for kind in CHANCES:
        case.check(f"did {kind}", plan.counts[kind], plan.counts[kind] > 0 or not many)
    for kind in [*INJECTED, "restart"]:
        count = plan.counts[f"inject: {kind}"]
        case.check(f"injected {kind}", count, count >= EACH_MIN or not many)


def tamper_insecure(case, directory):
    """The same with `--insecure`: what ends the association, and what changes the file. Each part alone is enough."""
    for name, chances, hurts in (
        ("inject", {"inject": CHANCES["inject"]}, True),
        ("flip", {"flip": CHANCES["flip"] * 10}, True),
        ("nothing", {}, False),
    ):
        plan = Tamper(case.options.seed, chances)
        codes, arrived, _, transfer = run(case, directory, name, plan, CONTROL_BYTES, insecure=True)
        well = codes == (0, 0) and arrived
        said = transfer.send.said() + "\n" + transfer.recv.said()
        case.check(f"plain, {name}: exit codes, and the file arrived", (codes, arrived), well != hurts, said)
        last = [line for line in said.splitlines() if line.startswith("manypath: ")]
        case.note(f"plain, {name}", f"{plan.counts.total()} done; {last[-1] if last else 'nothing said'}")


class Rewrite(Plan):
    """Rewrites the DTLS Key Management parameter of INIT, INIT ACK, or both: `change` gives other bytes for it."""

    def __init__(self, kinds, change):
        self.kinds, self.change, self.rewritten, self.sent = kinds, change, 0, []

    def datagram(self, flow, direction, data):
        kind = data[r.HEADER]
        if kind in self.kinds:
            data = self.rewrite(kind, data)
        if direction == TO_RECEIVER:
            self.sent.append(data)
        return [(0, data)]

    def rewrite(self, kind, data):
        (_, _, value), *_ = r.chunks_of(data[r.HEADER:])
        left = value[:16]
        for parameter, raw in r.parameters_of(value).items():
            if parameter == r.KEY_MANAGEMENT:
                self.rewritten += 1
                raw = self.change(raw)
            left += raw + bytes(-len(raw) % 4)
        *ports, tag = struct.unpack_from("!HHI", data)
        return r.packet(*ports, tag, r.chunk(kind, 0, left))


def removed(_):
    """Nothing in place of a parameter."""
    return b""


def tie_breaker_changed(raw):
    """The parameter with one bit of its tie breaker changed. That counts only if both ends can take both roles: no
    rule notices it, but the keys differ."""
    bit = random.randrange(8 * 4, 8 * 8)
    changed = bytearray(raw)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


INIT, INIT_ACK = {r.INIT}, {r.INIT_ACK}
# Kinds of packets, the change, and the chunks that the sender may send then; None: any.
REWRITES = {
    "removed from INIT": (INIT, removed, {r.INIT, r.ABORT}),
    "removed from INIT ACK": (INIT_ACK, removed, {r.INIT, r.ABORT}),
    "removed from both": (INIT | INIT_ACK, removed, {r.INIT, r.ABORT}),
    "changed in INIT": (INIT, tie_breaker_changed, None),
    "changed in INIT ACK": (INIT_ACK, tie_breaker_changed, None),
}


def stripped(case, directory):
    """An attacker pretends that one end, or both, cannot protect the association, or changes what they agree on. All
    at a time: ends with different keys wait 15 s for each other."""
    with concurrent.futures.ThreadPoolExecutor(len(REWRITES)) as pool:
        for result in pool.map(lambda name: rewritten(case, directory, name), REWRITES):
            for check in result:
                case.check(*check)


def rewritten(case, directory, name):
    """A transfer whose handshake is rewritten: checks."""
    kinds, change, allowed = REWRITES[name]
    part = directory / name
    part.mkdir()
    plan, began = Rewrite(kinds, change), time.monotonic()
    with Transfer(case.options, part, 100_000) as transfer, Relay(transfer.targets, plan) as relay:
        transfer.start(relay.dest)
        code = transfer.send.code_within(30)
        took = time.monotonic() - began
        stored = [entry.name for entry in transfer.stored.iterdir()]
        said, content = transfer.send.said(), transfer.source.read_bytes()
    sent = {data[r.HEADER] for data in plan.sent}
    leaked = any(content[at:at + 16] in data for data in plan.sent for at in range(0, len(content), 16))
    last = [line for line in said.splitlines() if line.startswith("manypath: ")]
    return [
        (f"{name}: parameters", plan.rewritten, plan.rewritten > 0),
        (f"{name}: sender's exit code", code, code == NOT_AUTHORISED, said),
        (f"{name}: the sender after {took:.1f} s", last[-1] if last else "nothing", "cannot be protected" in said),
        (f"{name}: stored", stored, not stored),
        (f"{name}: chunks that the sender sent", sorted(sent), not allowed or sent <= allowed),
        (f"{name}: content of the file was sent", leaked, not leaked),
    ]


CASES = {
    "tamper": tamper,
    "tamper-insecure": tamper_insecure,
    "stripped": stripped,
}
