"""Two hosts in private networks, relays, and a transfer between them: how the cases of NATs begin, and what they ask."""

import shutil
from pathlib import Path

from failure import Unavailable
from cases import prepare, settings
from nat import SYMMETRIC, TwoHomes
from transfer import Transfer, check_complete

MB = 20
RELAY_PORT = 3478


def check_coturn():
    """Raises Unavailable unless there is a TURN server of another make."""
    if shutil.which("turnserver") is None:
        raise Unavailable("needs the command 'turnserver' (Debian: coturn)")


class Relays:
    """Relays of one user, each on a public host."""

    def __init__(self, case, homes, count, v6=False):
        """With `v6` they have addresses of IPv6 only."""
        self.case, self.homes = case, homes
        self.places = [homes.public(f"relay{number}", 10 + number) for number in range(1, count + 1)]
        if v6:
            self.places = [(host, homes.public_v6(10 + number)) for number, (host, _) in enumerate(self.places, 1)]

    def start(self, number, *more):
        """Starts relay `number`, counted from 0; the process."""
        host, address = self.places[number]
        relay = self.homes.lab.spawn(host, [self.case.options.binary, "relay", "--json", "--user", "ann:secret", "--listen",
                                            address, "--allow-peer", ",".join(self.homes.PUBLIC), *more])
        relay.wait_line('"listening"', 20)
        return relay

    def start_coturn(self, number):
        """Starts coturn in place of our relay; the process. It grants no open addresses, and no mobility."""
        host, address = self.places[number]
        relay = self.homes.lab.spawn(host, [
            "turnserver", "-n", "--listening-ip", address, "--relay-ip", address, "--lt-cred-mech", "--user", "ann:secret",
            "--realm", "relay.example", "--no-tls", "--no-dtls", "--no-tcp", "--no-cli", "--log-file", "stdout",
            "--userdb", str(self.homes.lab.dir / f"{number}.db"), "--pidfile", str(self.homes.lab.dir / f"{number}.pid")])
        sockets = Path("/proc", str(relay.child.pid), "net/udp")
        is_open = lambda: f":{RELAY_PORT:04X} " in sockets.read_text(encoding="ascii") or None
        relay.wait_for(is_open, 20, "opens no port")
        return relay

    def word(self, number):
        """The word for --via."""
        return f"turn:ann:secret@{in_brackets(self.places[number][1])}"

    def words(self):
        """The words for all of them."""
        return ",".join(self.word(number) for number in range(len(self.places)))


def in_brackets(address):
    """An address as it stands before a port."""
    return f"[{address}]" if ":" in address else address


def is_at(path, address):
    """True for a path to or from this address."""
    return any(path[end].rsplit(":", 1)[0] == in_brackets(address) for end in ("local", "remote"))


class Scene:
    """Two homes, relays, and a file to send. `started` are the numbers of the relays that run."""

    def __init__(self, case, lab, sender=SYMMETRIC, receiver=SYMMETRIC, mb=MB, relays=1, started=None, relay_words=(),
                 relays_v6=False, **homes):
        """`sender` and `receiver` are the mapping and the filtering of their NATs."""
        self.case, self.lab, self.homes = case, lab, TwoHomes(lab, sender, receiver, **homes)
        self.relays = Relays(case, self.homes, relays, relays_v6)
        self.processes = [self.relays.start(number, *relay_words) for number in (range(relays) if started is None else started)]
        self.source, self.size, self.digest = prepare(case, lab, mb)
        self.words = settings(case.options)
        self.transfer = None

    def listen(self, *words, via=None):
        """Starts the receiver, which waits behind its relays, or those that the word `via` names."""
        self.transfer = Transfer(self.lab, self.case.options.binary, self.source, self.homes.receiver,
                                 [*self.words, *words, "--via", via or self.relays.words()])
        return self

    def start(self, *words, host=None):
        """Starts the sender, at home or in another host, and before it the receiver if that is missing."""
        if self.transfer is None:
            self.listen()
        self.transfer.start(host or self.homes.sender, *self.words, *words)
        return self

    def finish(self, timeout=120):
        """Waits for the end; the sender's result."""
        self.transfer.wait(timeout)
        return check_complete(self.case, self.transfer, self.digest)

    def check_let_in(self, numbers):
        """The ticket names these relays and no others."""
        told = [place["relay"] for place in self.transfer.listening["relayed"]]
        wanted = [f"{in_brackets(self.relays.places[number][1])}:{RELAY_PORT}" for number in numbers]
        self.case.check("relays that let peers in", told, told == wanted)

    def check_relayed(self, sent, number=0):
        """The transfer came through this relay, and nothing of it went elsewhere."""
        address = in_brackets(self.relays.places[number][1])
        carried = {path["remote"] for path in sent.get("paths", []) if path["bytes_sent"] > 100_000}
        self.case.check("where the content went", sorted(carried), len(carried) == 1 and next(iter(carried)).startswith(f"{address}:"))

    def check_begun(self, limit):
        """Measures the time from the start of the sender to the first byte at the receiver."""
        took = self.transfer.wait_bytes(1, 30) - self.transfer.send.begin
        self.case.measure("start to first byte", took, "s")
        self.case.check("start to first byte", f"{took:.2f} s", took < limit, pace=True)

    def direct(self, sent):
        """The paths of the sender that were not the relay's."""
        relays = [address for _, address in self.relays.places]
        return [path for path in sent.get("paths", []) if not any(is_at(path, relay) for relay in relays)]

    def check_direct(self, sent, limit, paths=None):
        """The content went mostly over direct paths, or these of them, and one worked within `limit` seconds."""
        paths = self.direct(sent) if paths is None else paths
        at = first_active(paths)
        self.case.measure("direct after", at if at is not None else float("nan"), "s")
        self.case.check("direct path in time", at, at is not None and at < limit, pace=True)
        carried = sum(path["bytes_sent"] for path in paths)
        self.case.check("most of the content went directly", f"{carried / 1e6:.1f} MB", carried > self.size / 2)


def first_active(paths):
    """When the first of these paths worked, in seconds from the start; None if none did."""
    times = [change["at_s"] for path in paths for change in path["state_changes"] if change["to"] == "active"]
    return min(times, default=None)
