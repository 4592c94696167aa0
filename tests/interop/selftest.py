#!/usr/bin/env python3
"""Runs usrsctp_peer against itself: the C side of the interoperability tests must work before it judges anyone else.

Needs no privilege. The cases with two addresses run in a network namespace of their own; where the system forbids those,
they are skipped, and the last line says so. Exit code 0: all passed, 1: some failed, 4: --require-all and some skipped.
"""
import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 60  # for one case; every program also ends by itself


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("0.0.0.0", 0))
        return s.getsockname()[1]


def start(command, until_listening):
    """Starts a program, and returns when it says that it listens."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if until_listening:
        line = process.stdout.readline()
        if "listening" not in line:
            process.kill()
            raise RuntimeError(f"{command[0]} did not start: {line.strip()}")
    return process


def result(process):
    try:
        out, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        return {"exit": None, "ok": False, "error": "did not end", "output": out}
    try:
        report = json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        report = {"ok": False, "error": "no report", "output": out}
    return report | {"exit": process.returncode}


class Case:
    """A listening and a connecting peer, maybe a lossy relay between them, and what their reports must say."""

    def __init__(self, name, listen, connect, closed, relay=None, addresses=("127.0.0.1", "127.0.0.1"), check=None):
        self.name, self.listen, self.connect, self.closed = name, listen.split(), connect.split(), closed
        self.relay, self.addresses, self.check = relay, addresses, check

    def run(self, build, prefix=(), during=None):
        """Returns None, or what went wrong. `prefix` enters the listener's namespace; `during` runs once they are up."""
        peer = str(build / "usrsctp_peer")
        listener_port, connector_port = free_port(), free_port()
        target_port, relay = listener_port, None
        a, b = self.addresses
        listening = start([*prefix, peer, "listen", "--json", "--udp-port", str(listener_port), "--local", a,
                           "--timeout", "45", *self.listen], True)
        try:
            if self.relay is not None:
                target_port = free_port()
                relay = start([str(build / "udp_lossy"), f"127.0.0.1:{target_port}", f"127.0.0.1:{listener_port}",
                               "--lifetime", str(LIMIT_S), *self.relay.split()], True)
            connecting = start([peer, "connect", "--json", "--udp-port", str(connector_port), "--local", b,
                                "--remote-udp-port", str(target_port), "--remote", a, "--timeout", "45",
                                *self.connect], False)
            if during is not None:
                during()
            reports = result(connecting), result(listening)
            return self.judge(*reports)
        finally:
            if listening.poll() is None:
                listening.kill()
                listening.communicate()
            if relay is not None:
                relay.terminate()
                relay.communicate(timeout=5)

    def judge(self, connecting, listening):
        for role, report, closed in (("connect", connecting, self.closed[0]), ("listen", listening, self.closed[1])):
            if report["exit"] != 0 or not report["ok"] or report["closed_by"] != closed:
                return f"{role}, expected {closed}: {json.dumps(report)}"
        if self.check is not some_missing and (connecting["bytes"] == 0 or connecting["bytes"] != listening["bytes"]):
            return f"bytes differ: {connecting['bytes']} and {listening['bytes']}"
        if connecting["ppid_mismatches"] or listening["ppid_mismatches"]:
            return "payload protocol identifiers were changed"
        return self.check(connecting, listening) if self.check else None


LOCAL, PEER = ("local-shutdown", "peer-shutdown"), ("peer-shutdown", "local-shutdown")
LOSSY = "--drop 30 --duplicate 10 --reorder 30 --delay 3"
FAST = "--rto-min-ms 50 --linger-ms 300 "  # so that repairs take little time
MIXED = "--messages 1,8,100,1400,30000 --streams 7 "


def confirmed_paths(connecting, listening):
    confirmed = {e["address"] for r in (connecting, listening) for e in r["events"] if e.get("state") == "confirmed"}
    return None if len(confirmed) >= 2 else f"expected two confirmed paths, saw {sorted(confirmed)}"


def lost_path(connecting, _listening):
    states = [e["state"] for e in connecting["events"] if e["event"] == "path"]
    return None if "unreachable" in states else f"the cut path was not noticed: {states}"


RECONFIGURE = "--reconfigure "


def some_missing(connecting, listening):
    given_up, missing = connecting["given_up"], listening["missing"]
    return None if given_up and missing else f"{given_up} messages given up, {missing} missing"


def reset_twice(_connecting, listening):
    """All three streams, then one: four of them begin again, and two new ones are there."""
    restarts, changes = listening["number_restarts"], [e for e in listening["events"] if e["event"] == "streams-changed"]
    return None if restarts == 4 and [c["in"] for c in changes] == [5] else f"{restarts} streams began again, changes: {changes}"


PLAIN_CASES = [
    Case("connector sends, shuts down", "receive", MIXED + "send 5000000", LOCAL),
    Case("connector sends, listener shuts down", "--close shutdown receive 500000", "--expect-close shutdown send 500000", PEER),
    Case("connector sends, aborts", "--expect-close abort receive", "--close abort send 500000", ("local-abort", "peer-abort")),
    Case("connector sends, listener aborts", "--close abort receive 500000", "--expect-close abort send 500000",
         ("peer-abort", "local-abort")),
    Case("listener sends, shuts down", MIXED + "send 5000000", "receive", PEER),
    Case("listener sends, connector shuts down", "--expect-close shutdown send 500000", "--close shutdown receive 500000", LOCAL),
    Case("listener sends, aborts", "--close abort send 500000", "--expect-close abort receive", ("peer-abort", "local-abort")),
    Case("listener sends, connector aborts", "--expect-close abort send 500000", "--close abort receive 500000",
         ("local-abort", "peer-abort")),
    Case("echo", "--seed 7 echo", "--seed 7 " + MIXED + "--echoed send 5000000", LOCAL),
    Case("unordered echo", "echo", "--unordered --messages 50,3000 --streams 3 --echoed send 2000000", LOCAL),
    Case("messages above the receive buffer", "receive", "--messages 1048576,10,262145 --streams 3 send 8000000", LOCAL),
    Case("long echo", "echo", "--messages 1048576,10 --echoed send 8000000", LOCAL),
    Case("IPv6", "receive", "--messages 2000 send 2000000", LOCAL, addresses=("::1", "::1")),
    Case("lossy, ordered", FAST + "receive", FAST + MIXED + "send 1000000", LOCAL, relay=LOSSY),
    Case("lossy, echo", FAST + "echo", FAST + MIXED + "--echoed send 500000", LOCAL, relay=LOSSY + " --seed 2"),
    Case("lossy, NR-SACK", FAST + "--nr-sack receive", FAST + "--nr-sack --messages 1400 send 1000000", LOCAL, relay=LOSSY),
    Case("lossy, abort", FAST + "--close abort receive 300000", FAST + "--expect-close abort send 300000",
         ("peer-abort", "local-abort"), relay="--duplicate 100 --reorder 100"),
    Case("lossy, limited retransmissions", FAST + "--reliable-every 4 receive",
         FAST + "--messages 100,1400,5000 --streams 3 --reliable-every 4 --limit rtx=0 send 500000", LOCAL, relay=LOSSY, check=some_missing),
    Case("lossy, limited lifetime", FAST + "--reliable-every 4 receive",
         FAST + "--messages 100,1400,5000 --streams 3 --reliable-every 4 --limit ttl=20 send 1000000", LOCAL, relay=LOSSY,
         check=some_missing),
    Case("streams reset and added", RECONFIGURE + "receive",
         RECONFIGURE + "--streams 3 --do 100:reset-out --do 200:reset-out=1 --do 300:add-out=2 --await 5 send 400000", LOCAL,
         check=reset_twice),
    Case("streams reset and added as the receiver asks", RECONFIGURE + "--do 50:reset-in --do 150:reset-in=1 --do 250:add-in=2 receive",
         RECONFIGURE + "--streams 3 --pace-ms 1 --await 5 send 400000", LOCAL, check=reset_twice),
    Case("outage", FAST + "receive", FAST + "--pace-ms 5 send 200000", LOCAL, relay="--outage-at 300 --outage-for 400"),
]
TWO = ("127.0.0.1,127.0.0.2",) * 2
LOOPBACK_CASES = [
    Case("two loopback addresses", "--heartbeat-ms 200 receive", "--heartbeat-ms 200 --pace-ms 5 send 300000", LOCAL,
         addresses=TWO, check=confirmed_paths),
    Case("two loopback addresses, cmt", "--cmt 1 receive", "--cmt 1 --pace-ms 2 send 300000", LOCAL, addresses=TWO,
         check=confirmed_paths),
]
VETH = ("10.99.1.2,10.99.2.2", "10.99.1.1,10.99.2.1")
LINK_CASES = [
    (Case("two links", "receive", "--pace-ms 1 send 500000", LOCAL, addresses=VETH, check=confirmed_paths), False),
    (Case("two links, cmt", "--cmt 1 receive", "--cmt 1 --pace-ms 1 send 500000", LOCAL, addresses=VETH, check=confirmed_paths), False),
    (Case("two links, the first is cut", FAST + "--heartbeat-ms 200 receive",
          FAST + "--path-max-retrans 2 --heartbeat-ms 200 --pace-ms 10 send 400000", LOCAL, addresses=VETH, check=lost_path), True),
]


def run_in_namespace(build, report):
    """The cases with two addresses; called inside `unshare --net`, where the loopback interface and all else is ours."""
    for command in ("ip link set lo up", "ip addr add 127.0.0.2/8 dev lo"):
        subprocess.run(command.split(), check=True)
    for case in LOOPBACK_CASES:
        report(case.name, case.run(build))
    with subprocess.Popen(["unshare", "--net", "sleep", str(5 * LIMIT_S)]) as other:
        try:
            enter = ("nsenter", "--target", str(other.pid), "--net")
            wait_for_namespace(other.pid)
            for i in (1, 2):
                link_up(i, other.pid, enter)
            for case, cut in LINK_CASES:
                report(case.name, case.run(build, enter, (lambda: cut_link(enter)) if cut else None))
        finally:
            other.kill()


def wait_for_namespace(pid):
    for _ in range(200):
        if os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"):
            return
        time.sleep(0.01)
    raise RuntimeError("the second network namespace did not appear")


def link_up(i, pid, enter):
    for command in (f"ip link add a{i} type veth peer name b{i} netns {pid}", f"ip addr add 10.99.{i}.1/24 dev a{i}",
                    f"ip link set a{i} up"):
        subprocess.run(command.split(), check=True)
    for command in ("ip link set lo up", f"ip addr add 10.99.{i}.2/24 dev b{i}", f"ip link set b{i} up"):
        subprocess.run([*enter, *command.split()], check=True)


def cut_link(enter):
    time.sleep(1)
    subprocess.run([*enter, *"ip link set b1 down".split()], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=HERE / "../../target/interop", help="where make put the programs")
    parser.add_argument("--require-all", action="store_true", help="fail if a case has to be skipped")
    parser.add_argument("--in-namespace", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    failed = 0

    def report(name, problem):
        nonlocal failed
        failed += problem is not None
        print(f"{'ok    ' if problem is None else 'FAILED'} {name}{'' if problem is None else ': ' + problem}", flush=True)

    if args.in_namespace:
        run_in_namespace(args.build, report)
        return 1 if failed else 0
    for case in PLAIN_CASES:
        report(case.name, case.run(args.build))
    unshare = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print(f"SKIPPED: {len(LOOPBACK_CASES) + len(LINK_CASES)} cases with two addresses (no network namespaces here)")
        return 1 if failed else 4 if args.require_all else 0
    inside = subprocess.run([*unshare, sys.executable, __file__, "--build", str(args.build), "--in-namespace"], check=False)
    return 1 if failed or inside.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
