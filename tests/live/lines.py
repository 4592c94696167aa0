"""The lines of `send`, `recv`, `perf` and `proxy` on narrow terminals: none is broken, and the last ones say which
path carried how much. Two hosts with two links each, long names of interfaces and IPv6 addresses."""

import os
import sys
import tempfile
from pathlib import Path

import namespaces
from failure import expect
from measurement import until
from terminal import Terminal

# As long as Linux allows.
DEVICES = ["enx0123456789ab", "wwp0s20f0u3i123"]
NETS = ["fd12:3456:789a:bcde:f012:3456:789a", "fd12:3456:789a:bcde:f012:3456:789b"]
SIZES = [(80, 24), (60, 24)]
PORT = 9899
SERVE = """
import socket
with socket.create_server(("127.0.0.1", 7000)) as server:
    with server.accept()[0] as one:
        one.sendall(bytes(3_000_000))
"""
FETCH = """
import socket
with socket.create_connection(("127.0.0.1", 7001)) as one:
    while one.recv(65536):
        pass
"""


class Hosts:
    """A client and a server with two links."""

    def __init__(self, options, size):
        namespaces.check_machine()
        self.lab = namespaces.Lab("lines")
        self.binary, self.size, self.pictures = str(Path(options.binary).resolve()), size, options.pictures

    def __enter__(self):
        self.client, self.server = self.lab.host("client"), self.lab.host("server")
        for device, net in zip(DEVICES, NETS):
            namespaces.sh("ip", "link", "add", "name", device, "netns", self.client, "type", "veth",
                   "peer", "name", device, "netns", self.server)
            for host, last in ((self.client, 1), (self.server, 2)):
                namespaces.sh("ip", "-n", host, "addr", "add", f"{net}:{last}/112", "dev", device, "nodad")
                namespaces.sh("tc", "-n", host, "qdisc", "add", "dev", device, *namespaces.tbf("20mbit"))
                namespaces.sh("ip", "-n", host, "link", "set", device, "up")
        for host in (self.client, self.server):
            self.lab.settle(host)
        return self

    def __exit__(self, *_):
        self.lab.close()

    def start(self, host, *words):
        places = {"XDG_RUNTIME_DIR": str(self.lab.dir), "TMPDIR": str(self.lab.dir)}
        return Terminal(places, ["ip", "netns", "exec", host, self.binary, *words], self.size)

    def there(self):
        return ",".join(f"[{net}:2]:{PORT}" for net in NETS)

    def looked_at(self, terminal, name, ticket=None):
        """Keeps what a terminal shows, and checks that it had to break no line. A ticket is one word."""
        said = terminal.said()
        if self.pictures:
            self.pictures.mkdir(parents=True, exist_ok=True)
            (self.pictures / f"{name}-{self.size[0]}.txt").write_text("\n".join(said).rstrip() + "\n")
        broken = [line for line in terminal.wrapped() if line != ticket]
        expect(not broken, f"{name}: the terminal broke {broken}")
        return said


def ticket_of(terminal):
    def there():
        """there is a ticket"""
        return next((line for line in terminal.said() if line.startswith("manypath2:")), None)
    return until(there, 20)[0]


def has_shares(said, *more):
    """The last lines have both interfaces with their shares of what was carried, and more."""
    text = " ".join(line.strip() for line in said)
    for word in (*(f"{device} " for device in DEVICES), " %), ", *more):
        expect(word in text, f"no {word!r} in:\n" + "\n".join(said))


def transfer(options):
    """send and recv at 80 and at 60 columns: no broken line, names, sizes and shares at both ends."""
    for size in SIZES:
        with Hosts(options, size) as hosts, tempfile.TemporaryDirectory() as folder:
            long = Path(folder, "a name that is far too long for the terminal of anybody " * 3 + "end.iso")
            long.write_bytes(os.urandom(12_000_000))
            small = [Path(folder, f"photo-{n}.jpeg") for n in range(5)]
            for file in small:
                file.write_bytes(os.urandom(2_000))
            into = Path(folder, "into")
            into.mkdir()
            with hosts.start(hosts.server, "recv", "--once", "--dir", str(into)) as recv:
                ticket = ticket_of(recv)
                files = [str(file) for file in (long, *small)]
                command = ("send", "--bind", ",".join(DEVICES), *files, ticket)
                with hosts.start(hosts.client, *command) as send:
                    for terminal, name in ((send, "send"), (recv, "recv")):
                        # While it runs, there is a line for each path.
                        terminal.shows("left", 20)
                        seen = terminal.seen()
                        hosts.looked_at(terminal, f"{name}-progress", ticket)
                        for word in (*(device[:6] for device in DEVICES), "bit/s", "RTT", "active"):
                            expect(word in seen, f"{name}: no {word!r} in:\n{seen}")
                        expect("packets/s" not in seen, seen)
                    for terminal, name in ((send, "send"), (recv, "recv")):
                        terminal.shows("EXIT 0", 30)
                        said = hosts.looked_at(terminal, name, ticket)
                        has_shares(said, "end.iso 12.0 MB", "photo-1.jpeg 2.0 kB", "and 3 more", "6 of 6 files stored")


def measurement(options):
    """perf at 80 and at 60 columns: no broken line, and shares at both ends."""
    for size in SIZES:
        with Hosts(options, size) as hosts, hosts.start(hosts.server, "perf", "server", "--once") as server:
            server.shows("Listening")
            command = ("perf", "client", hosts.there(), "--bind", ",".join(DEVICES), "-t", "3", "--bidir", "--interval", "1")
            with hosts.start(hosts.client, *command) as client:
                client.shows("EXIT 0", 30)
                has_shares(hosts.looked_at(client, "perf-client"), "to the server:", "from the server:")
                server.shows("EXIT 0")
                has_shares(hosts.looked_at(server, "perf-server"))


def proxied(options):
    """proxy at 80 and at 60 columns: no broken line, and shares at both ends."""
    for size in SIZES:
        with Hosts(options, size) as hosts, hosts.start(hosts.server, "proxy", "listen") as far:
            ticket = ticket_of(far)
            command = ("proxy", "connect", "--bind", ",".join(DEVICES), ticket, "-L", "7001:127.0.0.1:7000")
            serving = hosts.lab.spawn(hosts.server, [sys.executable, "-c", SERVE])
            with hosts.start(hosts.client, *command) as near:
                near.shows("Forwarding", 20)
                fetching = hosts.lab.spawn(hosts.client, [sys.executable, "-c", FETCH])
                for process in (fetching, serving):
                    process.wait(30)
                near.press("C-c")
                near.shows("EXIT", 20)
                has_shares(hosts.looked_at(near, "proxy-connect", ticket), "3.0 MB received")
                far.shows(" left:")
                has_shares(hosts.looked_at(far, "proxy-listen", ticket))


CASES = (transfer, measurement, proxied)
