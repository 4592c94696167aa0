"""Transfers to a receiver that nobody reaches directly."""

import json
import signal
import time

from namespaces import sh
from nat import CONES
from nat_scene import Scene, check_coturn

FIRST_BYTE_MAX = 1.0  # seconds from the start of the sender to the first byte of content, with a round trip of 80 ms
ALLOCATED = 0.5  # seconds until the sender has an address of its own at a relay, three round trips later
GIVEN_UP = 1.0  # seconds that a relay which does not answer may cost
RESTART_MAX = 2.5  # seconds until data flows after a router has forgotten its bindings
RESTART_MB = 60


def relayed(case, lab):
    """Both hosts are behind NATs. The receiver names a relay, the sender has only the ticket."""
    scene = Scene(case, lab).listen()
    scene.check_let_in([0])
    scene.start().check_begun(FIRST_BYTE_MAX)
    scene.check_relayed(scene.finish(60))


def relay_dead_at_start(case, lab):
    """The first relay of the receiver's list does not run: the ticket has the second."""
    scene = Scene(case, lab, relays=2, started=[1]).listen()
    scene.check_let_in([1])
    scene.start()
    scene.check_relayed(scene.finish(60), 1)


def relay_dies_before(case, lab):
    """The ticket has two relays, and the first dies before the sender begins."""
    scene = Scene(case, lab, relays=2).listen()
    case.check("relays that let peers in", len(scene.transfer.listening["relayed"]), len(scene.transfer.listening["relayed"]) == 2)
    scene.processes[0].signal(signal.SIGKILL)
    sh("ip", "-n", scene.relays.places[0][0], "link", "set", "eth0", "down")
    scene.start().check_begun(FIRST_BYTE_MAX + GIVEN_UP)
    scene.check_relayed(scene.finish(60), 1)


def routers_restart(case, lab):
    """In the middle of a transfer the receiver's router forgets its bindings, and later the sender's."""
    scene = Scene(case, lab, mb=RESTART_MB).start()
    transfer = scene.transfer
    for share, router in ((0.25, scene.homes.receiver_nat), (0.6, scene.homes.sender_nat)):
        transfer.wait_bytes(int(scene.size * share), 60)
        router.restart()
        begun = time.monotonic()
        before = transfer.progress()[-1][1]
        took = transfer.wait_bytes(before + 1_000_000, 60) - begun
        case.measure(f"data after {router.name} was restarted", took, "s")
        case.check(f"data after {router.name} was restarted", f"{took:.2f} s", took < RESTART_MAX, pace=True)
    scene.check_relayed(scene.finish(60))
    [relay] = scene.processes
    relay.signal(signal.SIGINT)
    relay.wait(10)
    [end] = [record for _, line in relay.stdout if (record := json.loads(line))["event"] == "stopped"]
    case.check("addresses that the relay gave", end["allocated"], end["allocated"] == 1)


def relay_without_open(case, lab):
    """The relay grants no open addresses: a sender that names it, too, gets through, relay to relay."""
    scene = Scene(case, lab, relay_words=["--no-open"]).listen()
    is_open = [place["open"] for place in scene.transfer.listening["relayed"]]
    case.check("the relay lets everybody in", is_open, is_open == [False])
    scene.start("--via", scene.relays.words())
    sent = scene.finish(60)
    says = "named with --via" in scene.transfer.recv.said()
    case.check("the receiver says what senders need", says, says, scene.transfer.recv.said)
    scene.check_relayed(sent)


def coturn(case, lab):
    """The relay is coturn, which both ends name: the file goes from relayed address to relayed address."""
    scene, sent = through_coturn(case, lab)
    scene.check_relayed(sent)


def coturn_direct(case, lab):
    """The same with NATs that give a socket one public port: coturn tells both ends theirs, and the file goes directly."""
    scene, sent = through_coturn(case, lab, CONES[2], CONES[2], mb=40)
    scene.check_direct(sent, 2)


def through_coturn(case, lab, *nats, **words):
    """A transfer that begins through coturn: the scene and the sender's result."""
    check_coturn()
    scene = Scene(case, lab, *nats, started=[], **words)
    scene.relays.start_coturn(0)
    scene.listen()
    is_open = [place["open"] for place in scene.transfer.listening["relayed"]]
    case.check("the relay lets everybody in", is_open, is_open == [False])
    scene.start("--via", scene.relays.words()).check_begun(FIRST_BYTE_MAX + ALLOCATED)
    return scene, scene.finish(60)


CASES = {
    "nat-relayed": relayed,
    "nat-relay-dead": relay_dead_at_start,
    "nat-relay-dies": relay_dies_before,
    "nat-restarts": routers_restart,
    "nat-relay-not-open": relay_without_open,
    "nat-coturn": coturn,
    "nat-coturn-direct": coturn_direct,
}
