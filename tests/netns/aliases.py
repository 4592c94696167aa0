"""Two paths through one router that has an address on each, and tells nobody that they are one's."""

import json
import sys

from namespaces import sh
from transfer import HERE

CLIENT, SERVER, RELAY = "10.90.0.1", "10.90.1.1", "10.92.1.1"
NEAR = "10.90.0.254"
ROUTER = ["10.97.1.2", "10.97.2.2"]  # its address on the direct path, and on that through the relay


class OneRouter:
    """A client, a router of Linux, two links to the router in question, and beyond that a server and a relay."""

    def __init__(self, case, lab, counters):
        self.case, self.lab = case, lab
        self.client, self.near, self.server, self.relay = (lab.host(n) for n in ("client", "near", "server", "relay"))
        lab.veth(self.client, "c0", f"{CLIENT}/24", self.near, "n0", f"{NEAR}/24")
        lab.route(self.client, "default", "via", NEAR)
        self._router(counters)
        lab.route(self.near, "10.90.1.0/24", "via", ROUTER[0])
        lab.route(self.near, "10.92.1.0/24", "via", ROUTER[1])
        lab.route(self.server, "default", "dev", "s1")
        lab.route(self.relay, "default", "dev", "s2")
        lab.forward(self.near)

    def _router(self, counters):
        """The router, with its devices in the hosts around it."""
        via = self.lab.host("router")
        # An answer takes the link that the question came through; what is forwarded to the client takes the first.
        devices = {"r1": (self.near, "10.97.1.1/24", f"{ROUTER[0]},10.90.0.0/24,10.97.1.0/24"),
                   "r2": (self.near, "10.97.2.1/24", f"{ROUTER[1]},10.97.2.0/24"),
                   "s1": (self.server, f"{SERVER}/24", "10.90.1.254,10.90.1.0/24"),
                   "s2": (self.relay, f"{RELAY}/24", "10.92.1.254,10.92.1.0/24")}
        ports = [f"{device}={nets}" for device, (_, _, nets) in devices.items()]
        program = self.lab.spawn(via, [sys.executable, str(HERE / "counting.py"), counters, *ports])
        program.wait_line("ready", 10)
        for device, (host, address, _) in devices.items():
            sh("ip", "-n", via, "link", "set", device, "netns", host)
            self.lab.configure(host, device, address)

    def list_paths(self):
        """The paths that `manypath paths` prints, by their relays' names."""
        binary = self.case.options.binary
        relay = self.lab.spawn(self.relay, [binary, "relay", "--json", "--user", "ann:secret", "--listen", RELAY,
                                            "--allow-peer", "10.0.0.0/8"])
        receiver = self.lab.spawn(self.server, [binary, "recv", "--json", "--dir", str(self.lab.dir)])
        for program in (relay, receiver):
            program.wait_line('"listening"', 20)
        listing = self.lab.spawn(self.client, [binary, "paths", "--json", "--via", f"turn:ann:secret@{RELAY}", SERVER])
        code = listing.wait(60)
        self.case.check("exit code", code, code == 0, listing.said)
        report = json.loads(listing.stdout[-1][1]) if listing.stdout else {"paths": []}
        return {"relay" if path["relay"] else "direct": path for path in report["paths"]}


def look(case, lab, counters):
    """The numbers of the routers at the second hops of both paths, and the links that the paths share."""
    paths = OneRouter(case, lab, counters).list_paths()
    seconds = [path["hops"][1] for name in ("direct", "relay") if len((path := paths.get(name, {"hops": []}))["hops"]) > 1]
    addresses = [hop["address"] for hop in seconds]
    case.check("the second hops", addresses, addresses == ROUTER, lambda: json.dumps(paths, indent=1))
    links = [(link["from"], link["to"]) for share in paths.get("direct", {}).get("shares", []) for link in share["links"]]
    return [hop["router"] for hop in seconds], links


def one_counter(case, lab):
    """A single counter for all packets: the two addresses are one router's, and the paths share the link to it."""
    routers, links = look(case, lab, "one")
    case.check("numbers of the routers", routers, len(routers) == 2 and routers[0] == routers[1])
    case.check("shared links", links, (NEAR, ROUTER[0]) in links)


def two_counters(case, lab):
    """A counter for each address, both from one number: nothing says that the two are one router's."""
    routers, links = look(case, lab, "each")
    case.check("numbers of the routers", routers, len(routers) == 2 and routers[0] != routers[1])
    case.check("shared links", links, all(NEAR != begin for begin, _ in links))


CASES = {"alias-one-counter": one_counter, "alias-two-counters": two_counters}
