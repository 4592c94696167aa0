"""Two hosts with one uplink each, and relays that give them further paths."""

import json
import signal
import sys
import time

from namespaces import Late, sh, tbf
from overlay import RATE, RELAYS, SERVER, Overlay
from transfer import CONTENT_SHARE, HERE, check_complete, delivered_at, mbit

SUM_MIN = 0.85  # of the paths' rates together
LOSE_MAX = 1.0  # seconds to take a path away, which waits for locks of the kernel
PAUSE_MAX = 3.0  # seconds without a delivery when a relay dies
FOUND_MAX = 15.0  # seconds until a shared bottleneck is found
TCP_SHARE = 1448 / 1514  # content of a full packet of the kernel's TCP, which has timestamps
TCP_MIN = 0.4  # of the shared link, for a TCP flow beside it from then on
SETTLES = 2.0  # seconds that the flows have to share the link anew
FAR_MS, FAR_LOSS = 100, 0.01  # of a direct link that is a bad way, each way
LEAVES = 2.0  # seconds until SACKs have left it
KNOWN_MAX = 25.0  # seconds until three relays know each other: two rounds, and the start of the programs
JOINS_MAX = 15.0  # seconds until a relay that joins carries data: a round of the relays, and the client's look at the list
RON_LEAVES = 18.0  # seconds in which an overlay leaves a dead relay
MESH_MB = 400  # sent meanwhile


def sum_of_paths(case, lab, *more):
    """The direct path and three relays carry almost the sum of their rates: none is taken for another's."""
    overlay = Overlay(case, lab)
    transfer, _, digest = overlay.start(100, *more)
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    share = sent.get("goodput_bps", 0) / (RATE * (RELAYS + 1))
    case.check("goodput", f"{mbit(sent.get('goodput_bps', 0))}, {share:.1%} of the paths' rates", share >= SUM_MIN)
    names = sorted(path["relay"] or "direct" for path in sent.get("paths", []))
    wanted = sorted(["direct", *(f"{address}:3478" for _, address in overlay.relays)])
    case.check("the paths' relays", names, names == wanted)


def sum_with_cmt_pf(case, lab):
    """The same with a preset that uses all paths whatever they share."""
    sum_of_paths(case, lab, "--preset", "cmt-pf")


def lose_a_path(case, lab, lose, *more):
    """A transfer in which `lose(overlay)` takes a path away after a third, and returns its relay."""
    overlay = Overlay(case, lab)
    transfer, size, digest = overlay.start(60, *more)
    transfer.wait_bytes(size // 3, 60)
    begin = time.monotonic()
    lost = lose(overlay)
    took = time.monotonic() - begin
    transfer.wait(120)
    case.note("taking the path away", f"{took:.2f} s")
    if took > LOSE_MAX:
        raise Late(f"it took {took:.1f} s to take the path away")
    sent = check_complete(case, transfer, digest)
    gap = sent.get("max_delivery_gap_s") or 99
    case.check("longest pause in delivery", f"{gap:.3f} s", gap < PAUSE_MAX, pace=True)
    states = [path["state"] for path in sent.get("paths", []) if path["relay"] == lost]
    case.check("state of the path that is gone", states, states and "active" not in states)


def relay_killed(case, lab):
    """The program of a relay is killed."""
    def kill(overlay):
        program, address = overlay.relays[0]
        program.signal(signal.SIGKILL)
        return f"{address}:3478"
    lose_a_path(case, lab, kill)


def relay_blackholed(case, lab):
    """The host of a relay is cut off from everything."""
    def cut(overlay):
        for dev in ("near0", "far0"):
            lab.link(overlay.hosts[0], dev, up=False)
        return f"{overlay.relays[0][1]}:3478"
    lose_a_path(case, lab, cut)


def direct_blackholed(case, lab, *more):
    """The direct path, on which the association was opened, swallows everything."""
    def cut(overlay):
        for router, net in ((overlay.near, "10.90.1.0/24"), (overlay.far, "10.90.0.0/24")):
            sh("ip", "-n", router, "route", "replace", "blackhole", net)
        return None
    lose_a_path(case, lab, cut, *more)


def sacks_blackholed(case, lab):
    """The same where the direct path carries all SACKs."""
    direct_blackholed(case, lab, "--preset", "mtcp")


def sacks_leave(case, lab):
    """The direct path, where the handshake goes, is far and loses packets. A relay is near: with a preset that sends all SACKs
    on one path, they go there as soon as the round-trip times are known."""
    overlay = Overlay(case, lab, delay_ms=FAR_MS, relays=1, loss=FAR_LOSS)
    transfer, _, digest = overlay.start(20, "--preset", "mtcp")
    begin = transfer.send.begin
    transfer.wait_bytes(1, 30)
    time.sleep(max(0.0, begin + LEAVES - time.monotonic()))
    sacks = dict(rates(lab, overlay.far, ["f1", "fr1"]))
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    case.check(f"bytes that take each way back in a second, after {LEAVES:.0f} s", sacks, sacks["fr1"] > 10 * sacks["f1"])
    notices = sent.get("notices", [])
    elected = [(n["at_s"], n.get("relay") or "direct", n["reason"])
               for n in notices if n["event"] == "primary_elected" and n["by_peer"]]
    relay = f"{overlay.relays[0][1]}:3478"
    case.check("the receiver chose the relay once", elected, [tuple(what) for _, *what in elected] == [(relay, "better")])
    if elected:
        case.measure("chosen after", elected[0][0], "s")
        case.check("chosen after", f"{elected[0][0]:.2f} s", elected[0][0] < LEAVES, pace=True)


def relays_only(case, lab):
    """There is no direct path: the association is opened through a relay."""
    overlay = Overlay(case, lab)
    lab.link(overlay.near, "n1", up=False)
    transfer, _, digest = overlay.start(20)
    transfer.wait(60)
    sent = check_complete(case, transfer, digest)
    carried = {path["relay"]: path["bytes_acked"] > 0 for path in sent.get("paths", [])}
    wanted = {None: False, **{f"{address}:3478": True for _, address in overlay.relays}}
    case.check("the paths that carried data", carried, carried == wanted)


def shared_bottleneck(case, lab):
    """A relay's way begins with the direct link, which a TCP flow of the kernel uses, too: that is found without a look at
    hops, one of the two paths is given up, and the TCP flow gets its share."""
    overlay = Overlay(case, lab, delay_ms=10, relays=0)
    overlay.behind_the_direct_link()
    overlay.send_single_packets()
    program = [sys.executable, str(HERE / "tcp.py")]
    rival = lab.spawn(overlay.server, [*program, "receive", SERVER, "5001"])
    rival.wait_line("listening", 10)
    lab.spawn(overlay.client, [*program, "send", SERVER, "5001"])
    rival.wait_line('"bytes"', 10)
    # Long enough for several turns of both flows between one loss and the next.
    transfer, _, digest = overlay.start(40, sender=["--trace-interval", "off"])
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    case.note("messages", transfer.send.said())
    verdicts = [n for n in sent.get("notices", []) if n["event"] == "shared_bottleneck" and n["suppressed"]]
    case.check("found, and a path given up", len(verdicts), verdicts)
    if not verdicts:
        return
    found = verdicts[0]["at_s"]
    case.measure("found after", found, "s")
    case.check("after", f"{found:.1f} s", found < FOUND_MAX, pace=True)
    names = [name["relay"] or "direct" for name in verdicts[0]["paths"]]
    case.check("the paths that share it", names, sorted(names) == ["10.94.0.1:3478", "direct"])
    said = [line for line in transfer.send.said().splitlines() if "share a bottleneck" in line]
    case.check("it is said, with the relay", said, len(said) == len(verdicts) and "via 10.94.0.1:3478" in "".join(said))
    counts = [json.loads(line) for _, line in list(rival.stdout)[1:]]
    counts = [(count["at"], count["bytes"]) for count in counts]
    # The clock of a result starts when the association is established, a few RTTs after the process.
    begin, end = transfer.send.begin + found + SETTLES, transfer.send.ended - 1
    share = (delivered_at(counts, end) - delivered_at(counts, begin)) * 8 / (end - begin) / (RATE * TCP_SHARE)
    case.measure("the TCP flow's part from then on", share * 100, "%")
    case.check("the TCP flow's part of the link from then on", f"{share:.1%} in {end - begin:.0f} s", share >= TCP_MIN)
    first = transfer.send.begin
    before = (delivered_at(counts, first + found) - delivered_at(counts, first)) * 8 / found / (RATE * TCP_SHARE)
    case.measure("its part before", before * 100, "%")


def shared_hops(case, lab):
    """A relay's way begins with the direct link: that is found by its hops, before any loss tells. One of the two paths is set
    aside; when the other one fails it comes back."""
    overlay = Overlay(case, lab, delay_ms=10, relays=1)
    overlay.behind_the_direct_link()
    behind = "10.94.0.1:3478"
    words = ["--set", "shared_congestion=off"]
    transfer, _, digest = overlay.start(60, *words, sender=["--trace-interval", "2s"])
    told = lambda: next((line for _, line in transfer.send.stderr if "shares too many hops" in line), None)
    line = transfer.send.wait_for(told, 10, "said nothing of shared hops")
    found = time.monotonic() - transfer.send.begin
    case.check("found within seconds", f"{found:.1f} s", found < 5, pace=True)
    # Which of the two is slower depends on their first losses.
    aside, used = (behind, "direct") if f"via {behind}) shares" in line else ("direct", behind)
    time.sleep(3)
    device = {"direct": (overlay.near, "n1"), behind: (overlay.far, "fr9")}[aside]
    transfer.wait_bytes(10_000_000, 30)
    case.note("set aside", aside)
    case.note("bytes that leave through its link in a second", rates(lab, device[0], [device[1]])[0][1])
    cut = time.monotonic() - transfer.send.begin
    if used == "direct":
        sh("ip", "-n", overlay.near, "route", "replace", "blackhole", "10.90.1.0/24")
    else:
        lab.link(overlay.far, "fr9", up=False)
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    notices = [(n["at_s"], n["event"], n.get("relay") or "direct", n.get("reason")) for n in sent.get("notices", [])]
    case.note("notices", [f"{at:.1f} s " + " ".join(map(str, what)) for at, *what in notices])
    first = next((n for n in sent.get("notices", []) if n["event"] == "shared_hops"), {"paths": []})
    names = sorted(path["relay"] or "direct" for path in first["paths"])
    case.check("the paths that share hops", names, names == [behind, "direct"])
    before = [name for at, event, name, reason in notices if at < cut and event == "path_suppressed"]
    case.check("set aside before that one failed", before, before == [aside])
    # A result's clock starts when the association is established, a little after the process.
    came = [at - cut for at, event, name, reason in notices if (event, name, reason) == ("path_restored", aside, "disjoint")]
    case.check("came back after", came, bool(came) and -1 < came[0] < 4,
               pace=bool(came) and came[0] > 0)
    gap = sent.get("max_delivery_gap_s") or 99
    case.check("longest pause in delivery", f"{gap:.3f} s", gap < PAUSE_MAX, pace=True)


def shared_far_half(case, lab):
    """Two relays on ways of their own, whose routes to the server meet at one link: the relays trace them, and one of the two
    paths is set aside. The direct path and the other one carry the data."""
    overlay = Overlay(case, lab, relays=0)
    overlay.far_link(delay_ms=10)
    for number in (1, 2):
        overlay.before_the_far_link(number)
    transfer, _, digest = overlay.start(60, "--set", "shared_congestion=off", sender=["--trace-interval", "60s"])
    told = lambda: next((line for _, line in transfer.send.stderr if "shares too many hops" in line), None)
    transfer.send.wait_for(told, 15, "said nothing of shared hops")
    found = time.monotonic() - transfer.send.begin
    case.check("found within seconds", f"{found:.1f} s", found < 10, pace=True)
    time.sleep(2)
    sent_bytes = dict(rates(lab, overlay.near, ["n1", "nr1", "nr2"]))
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    relays = [f"{address}:3478" for _, address in overlay.relays]
    shared = [n for n in sent.get("notices", []) if n["event"] == "shared_hops"]
    names = [sorted(path["relay"] or "direct" for path in notice["paths"]) for notice in shared]
    case.check("the paths that share hops", names, names and all(pair == relays for pair in names))
    aside = [path["relay"] for path in sent.get("paths", []) if path["suppressed"]]
    case.check("the path set aside", aside, len(aside) == 1 and aside[0] in relays)
    slow, busy = sorted((sent_bytes["nr1"], sent_bytes["nr2"]))
    case.check("bytes a second through the two relays", f"{slow}, {busy}", slow * 20 < busy)


def known_by(relay):
    """The addresses of the relays that a relay says to answer, and when it said that first."""
    found = [(at, json.loads(line)) for at, line in list(relay.stdout) if '"relays"' in line]
    if not found:
        return 0, []
    at, record = found[-1]
    return at, sorted(known["address"] for known in record["relays"] if known["alive"])


def relay_mesh(case, lab):
    """Three relays know each other; the sender names the first. A fourth joins in mid-transfer and carries data. Another
    one is killed: the transfer leaves it at once, the other relays within 18 s."""
    overlay = Overlay(case, lab, relays=0)
    overlay.peer_relays(RELAYS)
    name = lambda number: f"{overlay.relays[number - 1][1]}:3478"
    others = lambda number, count: sorted(name(n) for n in range(1, count + 1) if n != number)

    def wait_known(number, wanted, timeout):
        relay = overlay.relays[number - 1][0]
        probe = lambda: (lambda found: found[0] if found[1] == wanted else None)(known_by(relay))
        return relay.wait_for(probe, timeout, f"knows {known_by(relay)[1]}, not {wanted}")
    for number in range(1, RELAYS + 1):
        wait_known(number, others(number, RELAYS), KNOWN_MAX)
    # The four paths of the beginning are not to be tried against each other meanwhile.
    words = ["--set", "shared_congestion=off"]
    transfer, _, digest = overlay.start(case.options.size or MESH_MB, *words, relays=1, sender=["--trace-interval", "off"])
    transfer.wait_bytes(10_000_000, 60)
    before = dict(rates(lab, overlay.near, [f"nr{n}" for n in range(1, RELAYS + 1)]))
    case.check("bytes a second through the three relays", before, all(count > 200_000 for count in before.values()))

    begin = time.monotonic()
    overlay.peer_relays(1)
    fourth = lambda: lab.sent_bytes(overlay.near, f"nr{RELAYS + 1}") > 1_000_000 or None
    transfer.send.wait_for(fourth, JOINS_MAX + 15, "no data goes through the relay that joined")
    joined = time.monotonic() - begin
    case.measure("a relay that joins has carried 1 MB after", joined, "s")
    case.check("a relay that joins carries data", f"{joined:.1f} s", joined < JOINS_MAX, pace=True)
    for number in range(1, RELAYS + 1):
        wait_known(number, others(number, RELAYS + 1), KNOWN_MAX)

    program, _ = overlay.relays[1]
    program.signal(signal.SIGKILL)
    killed = time.monotonic()
    left = []
    for number in (1, 3, 4):
        wanted = [other for other in others(number, RELAYS + 1) if other != name(2)]
        left.append(wait_known(number, wanted, RON_LEAVES + 10) - killed)
    case.measure("the other relays leave a dead one after", max(left), "s")
    case.check("the overlay leaves it", ", ".join(f"{at:.1f} s" for at in left), max(left) < RON_LEAVES, pace=True)
    told = lambda: next((at for at, line in transfer.send.stderr if f"relay {name(2)}: left" in line), None)
    at = transfer.send.wait_for(told, 10, "the sender does not leave the dead relay")
    case.measure("the sender gives its path up after", at - killed, "s")
    transfer.wait(300)
    sent = check_complete(case, transfer, digest)
    gap = sent.get("max_delivery_gap_s") or 99
    case.measure("longest pause in delivery", gap, "s")
    case.check("longest pause in delivery", f"{gap:.3f} s", gap < PAUSE_MAX, pace=True)
    acked = {path["relay"] or "direct": path["bytes_acked"] for path in sent.get("paths", [])}
    used = {"direct", name(1), name(3), name(4)}
    case.check("the paths at the end, and bytes", acked, used <= acked.keys() and all(acked[p] > 1_000_000 for p in used))


def spares(case, lab):
    """Of four paths two carry data. One of them becomes twenty times slower: it makes room for a spare."""
    overlay = Overlay(case, lab)
    # What the rule on losses or a trial says of equal paths is another case's subject.
    chosen = ["paths_max=2", "path_review_interval=2s", "shared_congestion=off"]
    words = [word for text in chosen for word in ("--set", text)]
    transfer, size, digest = overlay.start(100, "--preset", "mtcp", *words)
    transfer.wait_bytes(size // 3, 60)
    devices = {"n1": "direct", **{f"nr{n}": f"10.91.{n}.1:3478" for n in range(1, RELAYS + 1)}}
    # A short look: a review, each 2 s, may exchange the path before it is slow.
    busiest = max(rates(lab, overlay.near, devices, 0.25), key=lambda pair: pair[1])[0]
    sh("tc", "-n", overlay.near, "qdisc", "replace", "dev", busiest, *tbf("1mbit"))
    changed = time.monotonic() - transfer.send.begin
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    notices = [(n["at_s"], n["event"], n.get("relay") or "direct", n.get("reason")) for n in sent.get("notices", [])]
    for at, *what in notices:
        case.note(f"{at:.1f} s", " ".join(map(str, what)))
    slow = devices[busiest]
    left = [at - changed for at, event, name, reason in notices
            if at > changed and (event, name) == ("path_suppressed", slow) and reason in ("spare", "slow")]
    case.check(f"the path that is slow now ({slow}) left after", left, left and left[0] < 3 * 2 + 1,
               pace=bool(left))
    came = [name for at, event, name, _ in notices if at > changed and event == "path_restored"]
    case.check("who came", came, bool(came) and came[0] != slow)
    in_use = [path["relay"] or "direct" for path in sent.get("paths", []) if not path["suppressed"]]
    case.check("paths in use at the end", in_use, len(in_use) == 2)
    progress, end = transfer.progress(), transfer.send.ended - 0.5
    begin = transfer.send.begin + changed + 7
    if end - begin > 2:
        rate = (delivered_at(progress, end) - delivered_at(progress, begin)) * 8 / (end - begin)
        share = rate / (2 * RATE * CONTENT_SHARE)
        case.check("the rate from then on", f"{mbit(rate)}, {share:.0%} of two paths", share > 0.75,
                   pace=True)


def rates(lab, host, devices, seconds=1):
    """Pairs (device, bytes that left through it within so many seconds)."""
    before = {device: lab.sent_bytes(host, device) for device in devices}
    time.sleep(seconds)
    return [(device, lab.sent_bytes(host, device) - before[device]) for device in devices]


def list_paths(case, lab):
    """`manypath paths` finds the routers, uses the disjoint relays and leaves out the one behind the direct link."""
    overlay = Overlay(case, lab, delay_ms=10)
    overlay.behind_the_direct_link()
    receiver = lab.spawn(overlay.server, [case.options.binary, "recv", "--json", "--dir", str(lab.dir)])
    receiver.wait_line('"listening"', 20)
    picture = lab.dir / "paths.svg"
    command = [case.options.binary, "paths", "--json", *overlay.via(), "--svg", str(picture), SERVER]
    listing = lab.spawn(overlay.client, command)
    code = listing.wait(60)
    case.check("exit code", code, code == 0, listing.said)
    report = json.loads(listing.stdout[-1][1]) if listing.stdout else {"paths": []}
    paths = {path["relay"] or "direct": path for path in report["paths"]}
    direct = paths.get("direct", {"hops": []})
    hops = [hop["address"] for hop in direct["hops"]]
    case.check("the direct path's hops", hops, hops == ["10.90.0.254", "10.93.0.2", SERVER])
    losses = [path["loss"] for path in report["paths"]]
    case.check("losses", losses, losses == [0.0] * 5)
    behind = "10.94.0.1:3478"
    chosen = sorted(name for name, path in paths.items() if path["selected"])
    # The direct link is all of the direct path, and half of the way through the last relay.
    wanted = sorted(name for name in paths if name != behind)
    case.check("paths to use", chosen, chosen == wanted, lambda: json.dumps(report, indent=1))
    links = [link for share in paths.get(behind, {}).get("shares", []) for link in share["links"]]
    shared = ("10.90.0.254", "10.93.0.2") in [(link["from"], link["to"]) for link in links]
    case.check("the direct link is seen to be shared", shared, shared)
    text = picture.read_text() if picture.exists() else ""
    case.check("the picture has five paths", text.count("<polyline"), text.count("<polyline") == 5)
    for name, path in paths.items():
        case.note(name, f"{(path['rtt_s'] or 0) * 1e3:.1f} ms, score {path['score']:.0f}, {path['why']}")


CASES = {
    "relays": sum_of_paths,
    "relays-cmt-pf": sum_with_cmt_pf,
    "relays-only": relays_only,
    "sacks-leave": sacks_leave,
    "relay-killed": relay_killed,
    "relay-blackholed": relay_blackholed,
    "direct-blackholed": direct_blackholed,
    "sacks-blackholed": sacks_blackholed,
    "shared-bottleneck": shared_bottleneck,
    "shared-hops": shared_hops,
    "shared-far-half": shared_far_half,
    "relay-mesh": relay_mesh,
    "spares": spares,
    "paths": list_paths,
}
