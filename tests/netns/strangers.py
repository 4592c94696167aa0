"""Servers while strangers do what they like: `peer.py` is the stranger, in a network of its own."""

import json
import re
import sys
import time

from cases import settings
from namespaces import sh
from transfer import HERE, make_file

# Honest clients are served within this, and servers have this much memory at most.
SERVED_MAX = 2.0
MEMORY_MAX = 64 * 2**20
TOKEN = "correct horse battery"


def three_hosts(lab):
    """A server with two links: to an honest client, and to a stranger with addresses in one network."""
    server, honest, stranger = lab.host("b"), lab.host("a"), lab.host("x")
    lab.veth(honest, "a1", "10.81.1.1/24", server, "b1", "10.81.1.2/24")
    lab.veth(stranger, "x1", "10.81.9.1/24", server, "b9", "10.81.9.2/24")
    for last in range(3, 33):
        sh("ip", "-n", stranger, "addr", "add", f"10.81.9.{last}/24", "dev", "x1")
    return server, honest, stranger


def receiver(case, lab, host, *words):
    """A `recv` of the token."""
    (lab.dir / "received").mkdir(exist_ok=True)
    command = [case.options.binary, "recv", "--overwrite", "--token", TOKEN, "--dir", str(lab.dir / "received")]
    process = lab.spawn(host, [*command, *words, *settings(case.options)])
    process.wait_line("manypath2:", 20)
    return process


def stranger_does(lab, host, what, *words, server="10.81.9.2:9899"):
    return lab.spawn(host, [sys.executable, str(HERE / "peer.py"), what, server, *map(str, words)])


def memory(process, name="VmRSS"):
    """Resident memory in bytes, now or (VmHWM) at most."""
    with open(f"/proc/{process.child.pid}/status", encoding="ascii") as status:
        return int(re.search(rf"{name}:\s+(\d+) kB", status.read())[1]) * 1024


def check_memory(case, what, process):
    peak = memory(process, "VmHWM")
    case.check(f"{what}: peak memory of the server", f"{peak / 2**20:.1f} MiB", peak < MEMORY_MAX)
    case.note(f"{what}: memory now", f"{memory(process) / 2**20:.1f} MiB")


def check_served(case, lab, who, host, words):
    begin = time.monotonic()
    process = lab.spawn(host, [case.options.binary, *words])
    process.wait(30)
    took = process.ended - begin
    case.check(f"{who}: exit code", process.code, process.code == 0, process.said)
    case.check(f"{who}: served within", f"{took:.2f} s", took <= SERVED_MAX, pace=True)


def idle(case, lab):
    """33 and 3300 strangers shake hands with `recv` and `perf server`, offer to protect, and say no more."""
    server, honest, stranger = three_hosts(lab)
    source = lab.dir / "source.bin"
    make_file(source, 1_000_000)
    recv = receiver(case, lab, server)
    perf = lab.spawn(server, [case.options.binary, "perf", "server", "--port", "9898"])
    perf.wait_for(lambda: next((line for _, line in perf.stderr if "Listening" in line), None), 20, "is not ready")
    addresses = ",".join(f"10.81.9.{last}" for last in range(3, 33))
    for count in (33, 3300):
        peers = [stranger_does(lab, stranger, "idle", "--protected", "--count", count, "--local", addresses,
                               server=f"10.81.9.2:{port}")
                 for port in (9899, 9898)]
        for port, peer in zip((9899, 9898), peers):
            said = peer.wait_line("opened", 60)
            case.check(f"{count} strangers at port {port}", said, f"opened {count}," in said)
        for turn in (1, 2, 3):
            words = ["send", "--token", TOKEN, str(source), "10.81.1.2"]
            check_served(case, lab, f"{count} strangers, sender {turn}", honest, words)
            words = ["perf", "client", "-n", "1 MB", "10.81.1.2:9898"]
            check_served(case, lab, f"{count} strangers, measurement {turn}", honest, words)
        # From among the strangers, too.
        words = ["send", "--token", TOKEN, str(source), "10.81.9.2"]
        check_served(case, lab, f"{count} strangers, a sender of their network", stranger, words)
        for peer in peers:
            peer.kill()
    check_memory(case, "recv", recv)
    check_memory(case, "perf server", perf)


def hoard(case, lab):
    """Trains of datagrams pin large buffers, of strangers and of one with the token. That one speaks no TLS, so its
    receiver has `--insecure`."""
    server, _, stranger = three_hosts(lab)
    for what, held, words in (
        ("40 strangers that offer to protect", 0, ["--count", 40, "--trains", 300, "--protected"]),
        ("40 strangers", 0, ["--count", 40, "--trains", 300]),
        ("512 bytes of each train", 8, ["--count", 1, "--token", TOKEN]),
        ("1400 bytes of each train", 8, ["--count", 1, "--token", TOKEN, "--payload", 1400, "--trains", 7000]),
        ("4 at once", 24, ["--count", 4, "--token", TOKEN, "--payload", 1000, "--trains", 8000]),
    ):
        recv = receiver(case, lab, server, *([] if "--protected" in words else ["--insecure"]))
        peer = stranger_does(lab, stranger, "hoard", *words)
        peer.wait_line("hoarded", 120)
        check_memory(case, what, recv)
        case.check(f"{what}: it holds something", f"{held} MiB", memory(recv) > (held + 4) * 2**20)
        peer.kill()
        recv.kill()


def aborts(case, lab):
    """A stranger opens associations and aborts them for four seconds: one with `--insecure` gets as far as being
    named, one that offers to protect and never does gets no line at all."""
    server, honest, stranger = three_hosts(lab)
    source = lab.dir / "source.bin"
    make_file(source, 1_000_000)
    for what, words, stranger_words in (("protected", [], ["--protected"]), ("plain", ["--insecure"], [])):
        recv = receiver(case, lab, server, *words)
        # The last line before it is ready; lines of both outputs come in any order.
        recv.wait_for(lambda: "followed by this ticket" in recv.said() or None, 20, "does not say how to send")
        before = len(recv.said().splitlines())
        peer = stranger_does(lab, stranger, "abort", "--stay", 4, *stranger_words)
        honest_words = ["send", "--token", TOKEN, *words, str(source), "10.81.1.2"]
        check_served(case, lab, f"{what}: a sender meanwhile", honest, honest_words)
        said = peer.wait_line("aborted", 30)
        case.note(f"{what}: the stranger", said)
        case.check(f"{what}: associations", said, int(said.split()[1]) >= 100)
        if what == "plain":
            recv.wait_for(lambda: "were omitted" in recv.said() or None, 20, "does not say how much it omitted")
        lines = recv.said().splitlines()[before:]
        case.check(f"{what}: lines that the receiver said", len(lines), len(lines) <= 60, recv.said)
        if what == "protected":
            named = [line for line in lines if "10.81.9." in line]
            case.check(f"{what}: lines that name the stranger", named, not named)
        case.check(f"{what}: control characters", "\x1b" in recv.said(), "\x1b" not in recv.said())
        check_memory(case, f"{what}: recv", recv)
        recv.kill()


def floods(case, lab):
    """An encrypted measurement over 100 Mbit/s, alone and while 100,000 datagrams a second of each kind come from
    elsewhere; and how long a short one takes then, from the start of the program to its end."""
    server, honest, stranger = lab.host("b"), lab.host("a"), lab.host("x")
    lab.veth(honest, "a1", "10.81.1.1/24", server, "b1", "10.81.1.2/24", "100mbit")
    lab.veth(stranger, "x1", "10.81.9.1/24", server, "b9", "10.81.9.2/24")
    perf = lab.spawn(server, [case.options.binary, "perf", "server"])
    perf.wait_for(lambda: next((line for _, line in perf.stderr if "Listening" in line), None), 20, "is not ready")

    def goodput(seconds="5"):
        client = lab.spawn(honest, [case.options.binary, "perf", "client", "-t", seconds, "--json", "10.81.1.2"])
        client.wait(30)
        result = json.loads("\n".join(line for _, line in client.stdout) or "{}")
        return result.get("goodput_bps", 0) / 1e6

    # The first finds a route and a queue that nobody has used.
    alone = max(goodput() for _ in range(3))
    case.note("alone", f"{alone:.1f} Mbit/s")
    kinds = ("noise", "init", "init-protected", "cookie-echo", "data", "heartbeat", "abort", "shutdown-ack", "sealed")
    for kind in kinds:
        peer = stranger_does(lab, stranger, "flood", "--kind", kind, "--stay", 10)
        time.sleep(0.5)
        meanwhile = goodput()
        began = time.monotonic()
        served = goodput("0.2")
        took = time.monotonic() - began
        said = peer.wait_line("flooded", 30)
        case.check(f"{kind}: {said}, goodput", f"{meanwhile:.1f} Mbit/s", meanwhile >= 0.95 * alone,
                   pace=True)
        case.check(f"{kind}: a client that comes is served", served, served > 0)
        case.check(f"{kind}: within", f"{took:.2f} s", took < 2.2, pace=True)
    check_memory(case, "perf server", perf)


# Need both processors to themselves: only if named.
MEASURED = {"floods": floods}
CASES = {"idle-strangers": idle, "hoarding": hoard, "abort-loop": aborts}
