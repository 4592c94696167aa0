"""Peers that abuse the search for direct paths."""

import re
import signal
import sys
from collections import deque

import capture
from nat import CONES
from nat_scene import Scene
from namespaces import sh
from transfer import HERE, sha256_of

TOKEN = "correct horse battery"
THIRD_PARTIES = "198.19.0.0/16"
NAMED = 10_000
CHECKS_MAX = 1000
A_SECOND_MAX = 64
UDP = 17
JITTER = 3  # checks of the second before or after, which are late or early on the way


def busiest_second(times):
    """The most of these times that lie within a second."""
    window, most = deque(), 0
    for at in times:
        window.append(at)
        while at - window[0] >= 1:
            window.popleft()
        most = max(most, len(window))
    return most


def candidates(case, lab):
    """A sender with the token names 10,000 candidates: ports of a third party and addresses of its network. The receiver
    sends few checks there, and the transfer goes on meanwhile."""
    scene = Scene(case, lab, CONES[2], CONES[2], mb=1)
    victim, address = scene.homes.public("victim", 20)
    lab.route(scene.homes.internet, THIRD_PARTIES, "via", address)
    sh("ip", "-n", victim, "route", "add", "local", THIRD_PARTIES, "dev", "lo")
    stranger, _ = scene.homes.public("stranger", 21)
    file = lab.dir / "victim.pcap"
    recorder = lab.spawn(victim, [sys.executable, str(HERE / "capture.py"), str(file)])
    recorder.wait_line("ready", 10)
    scene.listen("--insecure", "--token", TOKEN)
    [place] = scene.transfer.listening["relayed"]
    words = [place["address"], "--token", TOKEN, "--host", address, "--network", THIRD_PARTIES, "--count", str(NAMED)]
    peer = lab.spawn(stranger, [sys.executable, str(HERE / "candidates.py"), *words])
    said = peer.wait_line("named", 90)
    case.note("the peer", said)
    recv = scene.transfer.recv
    recv.wait(20)
    recorder.signal(signal.SIGTERM)
    recorder.wait(20)
    case.check("packets that the capture lost", recorder.stdout[-1][1], recorder.stdout[-1][1] == "lost 0")

    # Its device has no Ethernet headers. It answers by ICMP that nobody is there.
    checks = [(at, packet) for at, packet in capture.timed(file) if packet[9] == UDP]
    judge_checks(case, checks, int(re.search(r"sent (\d+) bytes", said)[1]))
    digest = re.search(r"SHA-256 (\w+)", said)[1]
    same = scene.transfer.received().exists() and sha256_of(scene.transfer.received()) == digest
    case.check("receiver's exit code", recv.code, recv.code == 0, recv.said)
    case.check("the file is the same", same, same)
    pause = scene.transfer.result(recv).get("max_delivery_gap_s") or 99
    case.check("longest pause in delivery", f"{pause:.2f} s", pause < 1.0, pace=True)


def judge_checks(case, checks, sent):
    """What arrived at the third parties, after a peer had sent so many bytes."""
    times = [at for at, _ in checks]
    most = busiest_second(times)
    hosts = {packet[16:20] for _, packet in checks}
    case.note("third parties", len(hosts))
    case.measure("most checks in a second", most, "checks")
    case.check("checks in all", len(checks), CHECKS_MAX * 0.9 <= len(checks) <= CHECKS_MAX)
    case.check("most checks in a second", most, most <= A_SECOND_MAX + JITTER, pace=True)
    length = sum(len(packet) for _, packet in checks)
    case.check("bytes of checks", f"{length}, the peer sent {sent}", length <= sent)


CASES = {"nat-hostile-candidates": candidates}
