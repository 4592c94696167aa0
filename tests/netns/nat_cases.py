"""Transfers to a receiver that nobody reaches directly."""

import json
import signal
import time

from cases import prepare, settings
from namespaces import sh
from nat import TwoHomes
from transfer import Transfer, check_complete

FIRST_BYTE_MAX = 1.0  # seconds from the start of the sender to the first byte of content, with a round trip of 80 ms
GIVEN_UP = 1.0  # seconds that a relay which does not answer may cost
RESTART_MAX = 2.5  # seconds until data flows after a router has forgotten its bindings
MB, RESTART_MB = 20, 60


class Relays:
    """Relays of one user, each on a public host."""

    def __init__(self, case, homes, count):
        self.case, self.homes = case, homes
        self.places = [homes.public(f"relay{number}", 10 + number) for number in range(1, count + 1)]

    def start(self, number, *more):
        """Starts relay `number`, counted from 0; the process."""
        host, address = self.places[number]
        relay = self.homes.lab.spawn(host, [self.case.options.binary, "relay", "--json", "--user", "ann:secret", "--listen",
                                            address, "--allow-peer", self.homes.PUBLIC, *more])
        relay.wait_line('"listening"', 20)
        return relay

    def word(self, number):
        """The word for --via."""
        return f"turn:ann:secret@{self.places[number][1]}"

    def words(self):
        """The words for all of them."""
        return ",".join(self.word(number) for number in range(len(self.places)))


def check_relayed(case, sent, address):
    """The transfer came through the relay at this address, and nothing of it went elsewhere."""
    carried = {path["remote"] for path in sent.get("paths", []) if path["bytes_sent"] > 100_000}
    case.check("where the content went", sorted(carried), len(carried) == 1 and next(iter(carried)).startswith(f"{address}:"))


def begins_at_once(case, transfer, limit):
    """Measures the time to the first byte at the receiver."""
    took = transfer.wait_bytes(1, 30) - transfer.send.begin
    case.measure("start to first byte", took, "s")
    case.check("start to first byte", f"{took:.2f} s", took < limit, pace=True)


def relayed(case, lab, mapping="symmetric", filtering="port"):
    """Both hosts are behind NATs. The receiver names a relay, the sender has only the ticket."""
    homes = TwoHomes(lab, mapping, filtering)
    relays = Relays(case, homes, 1)
    relays.start(0)
    source, _, digest = prepare(case, lab, MB)
    words = settings(case.options)
    transfer = Transfer(lab, case.options.binary, source, homes.receiver, [*words, "--via", relays.words()])
    told = [place["relay"] for place in transfer.listening["relayed"]]
    case.check("relays that let peers in", told, told == [f"{relays.places[0][1]}:3478"])
    transfer.start(homes.sender, *words)
    begins_at_once(case, transfer, FIRST_BYTE_MAX)
    transfer.wait(60)
    sent = check_complete(case, transfer, digest)
    check_relayed(case, sent, relays.places[0][1])


def relay_dead_at_start(case, lab):
    """The first relay of the receiver's list does not run: the ticket has the second."""
    homes = TwoHomes(lab)
    relays = Relays(case, homes, 2)
    relays.start(1)
    source, _, digest = prepare(case, lab, MB)
    words = settings(case.options)
    transfer = Transfer(lab, case.options.binary, source, homes.receiver, [*words, "--via", relays.words()])
    told = [place["relay"] for place in transfer.listening["relayed"]]
    case.check("relays that let peers in", told, told == [f"{relays.places[1][1]}:3478"])
    transfer.start(homes.sender, *words)
    transfer.wait(60)
    check_relayed(case, check_complete(case, transfer, digest), relays.places[1][1])


def relay_dies_before(case, lab):
    """The ticket has two relays, and the first dies before the sender begins."""
    homes = TwoHomes(lab)
    relays = Relays(case, homes, 2)
    first, _ = relays.start(0), relays.start(1)
    source, _, digest = prepare(case, lab, MB)
    words = settings(case.options)
    transfer = Transfer(lab, case.options.binary, source, homes.receiver, [*words, "--via", relays.words()])
    case.check("relays that let peers in", len(transfer.listening["relayed"]), len(transfer.listening["relayed"]) == 2)
    first.signal(signal.SIGKILL)
    sh("ip", "-n", relays.places[0][0], "link", "set", "eth0", "down")
    transfer.start(homes.sender, *words)
    begins_at_once(case, transfer, FIRST_BYTE_MAX + GIVEN_UP)
    transfer.wait(60)
    check_relayed(case, check_complete(case, transfer, digest), relays.places[1][1])


def routers_restart(case, lab):
    """In the middle of a transfer the receiver's router forgets its bindings, and later the sender's."""
    homes = TwoHomes(lab)
    relays = Relays(case, homes, 1)
    relay = relays.start(0)
    source, size, digest = prepare(case, lab, RESTART_MB)
    words = settings(case.options)
    transfer = Transfer(lab, case.options.binary, source, homes.receiver, [*words, "--via", relays.words()])
    transfer.start(homes.sender, *words)
    for share, router in ((0.25, homes.receiver_nat), (0.6, homes.sender_nat)):
        transfer.wait_bytes(int(size * share), 60)
        router.restart()
        begun = time.monotonic()
        before = transfer.progress()[-1][1]
        took = transfer.wait_bytes(before + 1_000_000, 60) - begun
        case.measure(f"data after {router.name} was restarted", took, "s")
        case.check(f"data after {router.name} was restarted", f"{took:.2f} s", took < RESTART_MAX, pace=True)
    transfer.wait(60)
    check_relayed(case, check_complete(case, transfer, digest), relays.places[0][1])
    relay.signal(signal.SIGINT)
    relay.wait(10)
    [end] = [record for _, line in relay.stdout if (record := json.loads(line))["event"] == "stopped"]
    case.check("addresses that the relay gave", end["allocated"], end["allocated"] == 1)


def relay_without_open(case, lab):
    """The relay grants no open addresses: a sender that names it, too, gets through, relay to relay."""
    homes = TwoHomes(lab)
    relays = Relays(case, homes, 1)
    relays.start(0, "--no-open")
    source, _, digest = prepare(case, lab, MB)
    words = settings(case.options)
    transfer = Transfer(lab, case.options.binary, source, homes.receiver, [*words, "--via", relays.words()])
    is_open = [place["open"] for place in transfer.listening["relayed"]]
    case.check("the relay lets everybody in", is_open, is_open == [False])
    transfer.start(homes.sender, *words, "--via", relays.words())
    transfer.wait(60)
    says = "named with --via" in transfer.recv.said()
    case.check("the receiver says what senders need", says, says, transfer.recv.said)
    check_relayed(case, check_complete(case, transfer, digest), relays.places[0][1])


CASES = {
    "nat-relayed": relayed,
    "nat-relay-dead": relay_dead_at_start,
    "nat-relay-dies": relay_dies_before,
    "nat-restarts": routers_restart,
    "nat-relay-not-open": relay_without_open,
}
