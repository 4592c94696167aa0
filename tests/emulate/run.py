#!/usr/bin/env python3
"""Tests of `manypath emulate`: delays, rates, losses and outages as programs see them, MPTCP, exit
codes, and that nothing remains. See README.md beside this file.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import stat
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import comparison  # noqa: E402
from failure import Failed, Unavailable  # noqa: E402
from requirements import add_binary, add_require, skip  # noqa: E402
from second_chance import Verdict, judge, settle  # noqa: E402

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
PEER = f"{sys.executable} {HERE / 'peer.py'}"
# Standard deviations: a right network is outside with a probability of 6e-5.
DEVIATIONS = 4

TWO_PATHS = """
transfer.size = "1 MB"
[[path]]
rate = "100 Mbit/s"
delay = "10 ms"
[[path]]
rate = "100 Mbit/s"
delay = "30 ms"
"""


class Lab:
    """One case: its files, and what it found."""

    def __init__(self, options, directory):
        self.options, self.dir, self.checks = options, directory, []

    def check(self, what, value, ok, pace=False):
        """With `pace` it is a bound in time: a busy machine can be the reason why it is missed."""
        self.checks.append((what, value, bool(ok), pace))

    def lacks(self, why):
        """Something is not there: an error with --require."""
        raise (Failed if self.options.require else Unavailable)(why)

    def command(self, scenario, *arguments, program, binary=None):
        file = self.dir / "scenario.toml"
        file.write_text(scenario)
        words = program if isinstance(program, list) else ["sh", "-c", program]
        return [binary or self.options.binary, "emulate", str(file), "--quiet", *arguments, "--", *words]

    def run(self, scenario, *arguments, program, timeout=30, **more):
        """Runs the command to its end: exit code, output, errors, report."""
        report = self.dir / "report.json"
        report.unlink(missing_ok=True)
        command = self.command(scenario, "--report", str(report), *arguments, program=program)
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                              **more)
        done.report = json.loads(report.read_text()) if report.exists() else None
        return done

    def good(self, *arguments, **more):
        """The same, where the program must succeed."""
        done = self.run(*arguments, **more)
        if done.returncode != 0:
            raise Failed(f"exit code {done.returncode}: {done.stderr.strip()}")
        return done

    def start(self, scenario, *arguments, program, **more):
        return subprocess.Popen(self.command(scenario, *arguments, program=program), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def sink(self, path):
        """The arguments for a sink at z, and the file with what it saw."""
        out = self.dir / f"sink-{path}.json"
        return ["--at", "z", f"{PEER} sink z-{path} 5000 {out}"], out


def read(file):
    if not file.exists():
        raise Failed(f"no {file.name}")
    return json.loads(file.read_text())


def delay(lab):
    """One-way delays of single packets."""
    arguments, outs = [], []
    for path in (1, 2):
        more, out = lab.sink(path)
        arguments, outs = arguments + more, outs + [out]
    probes = " & ".join(f"{PEER} probe a-{path} z-{path} 5000 300 7" for path in (1, 2))
    done = lab.good(TWO_PATHS, *arguments, program=f"{probes} & wait")
    for out, wanted in zip(outs, (10, 30)):
        late = sorted((got - sent) * 1e3 - wanted for _, sent, got, _ in read(out))
        lab.check(f"{wanted} ms: arrived of 300", len(late), len(late) == 300)
        median, most = statistics.median(late), late[int(len(late) * 0.95)]
        lab.check(f"{wanted} ms: median, ms later", round(median, 3), 0 <= median < 0.5, pace=True)
        lab.check(f"{wanted} ms: 95 of 100, ms later", round(most, 3), most < 1, pace=True)
    p99 = done.report["lateness"]["p99_s"] * 1e3
    lab.check("99 of 100 late by, ms, as reported", round(p99, 3), p99 < 1, pace=True)


def rate(lab):
    """Datagrams at 48 Mbit/s into each of two links of 40 Mbit/s: a rate that leaves time on any machine."""
    arguments, outs = [], []
    for path in (1, 2):
        more, out = lab.sink(path)
        arguments, outs = arguments + more, outs + [out]
    blasts = " & ".join(f"{PEER} blast a-{path} z-{path} 5000 48 4" for path in (1, 2))
    done = lab.good(TWO_PATHS.replace("100 Mbit/s", "40 Mbit/s"), *arguments, program=f"{blasts} & wait")
    sent = [int(line) for line in done.stdout.split()]
    for number, out in enumerate(outs):
        seen = read(out)
        # The first second fills the queue.
        begin = seen[0][2] + 1
        full = [packet for packet in seen if begin < packet[2] < begin + 2.5]
        bits = sum(length for *_, length in full[1:]) * 8
        mbits = bits / (full[-1][2] - full[0][2]) / 1e6
        lab.check(f"link {number + 1}, Mbit/s", round(mbits, 2), 39.6 < mbits < 40.4, pace=True)
        link = done.report["links"][2 * number]
        lab.check(f"link {number + 1}, packets that arrived as reported", len(seen), len(seen) == link["packets"])
        lab.check(f"link {number + 1}, packets dropped by a full queue", link["overflowed"], link["overflowed"] > 1000, pace=True)
    offered = sum(link["packets"] + link["overflowed"] for link in done.report["links"])
    lab.check("packets that entered of those sent", (offered, sum(sent)), offered == sum(sent))
    lab.check("warnings", done.report["warnings"], not done.report["warnings"], pace=True)


def loss(lab):
    """Random loss, and how its seed repeats."""
    scenario = TWO_PATHS.replace('"10 ms"', '"10 ms"\nloss = "3 %"')
    lost = []
    for seed in (1, 1, 2):
        arguments, out = lab.sink(1)
        done = lab.good(scenario, *arguments, "--seed", str(seed), program=f"{PEER} blast a-1 z-1 5000 60 1.5")
        sent, seen = int(done.stdout), read(out)
        numbers = {packet[0] for packet in seen}
        # The duration decides how many are sent.
        lost.append([number for number in range(6000) if number not in numbers])
        expected, deviation = sent * 0.03, (sent * 0.03 * 0.97) ** 0.5
        gone = sent - len(seen)
        lab.check(f"seed {seed}: lost of {sent}, {expected:.0f} expected", gone,
                  abs(gone - expected) < DEVIATIONS * deviation)
        lab.check(f"seed {seed}: lost as reported", done.report["links"][0]["lost"],
                  done.report["links"][0]["lost"] == gone)
    lab.check("the same seed loses the same packets", len(lost[0]), lost[0] == lost[1] and lost[0])
    lab.check("another seed loses others", len(lost[2]), lost[0] != lost[2])


def outage(lab):
    """An outage of the second path, from one second after the first packet."""
    scenario = TWO_PATHS + 'down = [{ at = "1 s", for = "500 ms", after = "first data" }]\n'
    arguments, out = lab.sink(2)
    lab.good(scenario, *arguments, program=f"{PEER} probe a-2 z-2 5000 500 4")
    seen = {number: sent for number, sent, *_ in read(out)}
    missing = [number for number in range(500) if number not in seen]
    # Sent at 4 ms times their number.
    lab.check("lost from, ms", missing[0] * 4, abs(missing[0] * 4 - 1000) <= 8, pace=True)
    lab.check("lost to, ms", missing[-1] * 4, abs(missing[-1] * 4 - 1500) <= 8, pace=True)
    lab.check("all in between", len(missing), len(missing) == missing[-1] - missing[0] + 1)


def perf(lab):
    """Our own transfers over both paths."""
    binary = lab.options.binary
    done = lab.good(TWO_PATHS, "--at", "z", f"{binary} perf server --quiet",
                    program=[binary, "perf", "client", "z", "-t", "5", "--json"])
    result = json.loads(done.stdout)
    share = result["goodput_bps"] / 200e6
    lab.check("share of 2 x 100 Mbit/s", round(share, 3), 0.8 < share < 1, pace=True)
    used = [path["bytes_sent"] * 8 / result["seconds"] / 1e6 for path in result["paths"]]
    lab.check("Mbit/s of each path", [round(mbits, 1) for mbits in used], sum(mbits > 70 for mbits in used) == 2, pace=True)


def require_mptcp(lab):
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close()
    except OSError as why:
        lab.lacks(f"the kernel has no MPTCP: {why}")


def mptcp(lab):
    """MPTCP of the kernel over both paths."""
    require_mptcp(lab)
    out = lab.dir / "mptcp.json"
    done = lab.good(TWO_PATHS, "--mptcp", "--at", "z", f"{PEER} mptcp-serve 0.0.0.0 5000 {out}",
                    program=f"{PEER} mptcp-send z-1 5000 5")
    arrivals = read(out)
    end = arrivals[-1][0]
    middle = [(at, count) for at, count in arrivals if end - 4 < at < end - 1]
    mbits = (middle[-1][1] - middle[0][1]) * 8 / (middle[-1][0] - middle[0][0]) / 1e6
    lab.check("Mbit/s of 200", round(mbits, 1), mbits >= 0.85 * 200, pace=True)
    loads = [link["bytes"] for link in done.report["links"] if link["direction"] == "forward"]
    lab.check("bytes of each link", loads, min(loads) > 0.3 * max(loads), pace=True)


def iperf3(lab):
    """iperf3 by MPTCP over both paths, and by TCP over the first: a program that knows nothing of
    either.
    """
    require_mptcp(lab)
    for program in ("iperf3", "mptcpize"):
        if shutil.which(program) is None:
            lab.lacks(f"needs {program} (Debian: {program})")
    rates = {}
    for name, prefix, option in (("TCP", "", ()), ("MPTCP", "mptcpize run ", ("--mptcp",))):
        # Its messages go to standard output.
        done = lab.good(TWO_PATHS, *option, "--at", "z", f"exec {prefix}iperf3 -s >{lab.dir / 'server'}",
                        program=f"{prefix}iperf3 -c z-1 -t 5 --json")
        rates[name] = json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] / 1e6
    lab.check("TCP: Mbit/s of 100", round(rates["TCP"], 1), 50 < rates["TCP"] < 100, pace=True)
    lab.check("MPTCP: Mbit/s of 200, more than one link has", round(rates["MPTCP"], 1), 120 < rates["MPTCP"] < 200, pace=True)
    loads = [link["bytes"] for link in done.report["links"] if link["direction"] == "forward"]
    lab.check("MPTCP: bytes of each link", loads, min(loads) > 0.2 * max(loads), pace=True)


def packet_sizes(lab):
    """A link with an MTU tells the sender."""
    scenario = TWO_PATHS.replace('"10 ms"', '"10 ms"\nmtu = 1300')
    done = lab.good(scenario, program=f"{PEER} pmtu a-1 z-1; {PEER} pmtu a-2 z-2")
    lab.check("MTU of the two paths", done.stdout.split(), done.stdout.split() == ["1300", "1500"])


def names(lab):
    """Names, variables and routes."""
    show = "echo $MANYPATH_HOST $MANYPATH_ADDRESSES_A $MANYPATH_ADDRESSES_Z; getent hosts z-2; hostname; ls -d /proc/[0-9]*"
    done = lab.good(TWO_PATHS, program=show)
    lines = done.stdout.splitlines()
    lab.check("variables", lines[0], lines[0] == "a 10.77.1.1,10.77.2.1 10.77.1.2,10.77.2.2")
    lab.check("z-2", lines[1].split()[0], lines[1].split()[0] == "10.77.2.2")
    lab.check("name of the host", lines[2], lines[2] == "a")
    lab.check("processes that it sees", len(lines) - 3, 1 <= len(lines) - 3 <= 5)
    cross = "import socket; s = socket.socket(); s.bind(('10.77.1.1', 0)); s.connect(('10.77.2.2', 1))"
    done = lab.run(TWO_PATHS, program=[sys.executable, "-c", cross])
    lab.check("from path 1 to path 2", done.stderr.strip().splitlines()[-1:], "unreachable" in done.stderr
              or "No route" in done.stderr)


def exit_codes(lab):
    """The program's exit code is ours; our own errors are told apart by their messages."""
    for program, wanted in (("true", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137)):
        lab.check(program, code := lab.run(TWO_PATHS, program=program).returncode, code == wanted)
    for arguments, program, wanted in (
            ((), ["/nonexistent/program"], "cannot run /nonexistent/program"),
            (("--at", "z", "exit 7"), "true", "`exit 7` failed at once"),
            (("--at", "y", "true"), "true", "no host y"),
            (("--host", "y"), "true", "no host y"),
            (("--point", "2"), "true", "has 1 points")):
        done = lab.run(TWO_PATHS, *arguments, program=program)
        message = done.stderr.strip().splitlines()[:1]
        lab.check(wanted, message, done.returncode in (1, 2) and message and wanted in message[0])
    done = lab.run(TWO_PATHS, "--at", "z", "true", "--host", "z", program="echo $MANYPATH_HOST")
    lab.check("a COMMAND that ends well, PROGRAM at z", done.stdout.strip(), done.stdout.strip() == "z")
    done = lab.run(TWO_PATHS, "--json", program="echo noise")
    lab.check("--json leaves standard output to the report", json.loads(done.stdout)["exit_code"],
              "noise" in done.stderr)


def processes_with(text):
    """Processes of this machine whose command line has `text`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "cmdline").read_bytes().replace(b"\0", b" "):
                found.append(int(folder.name))
        except OSError:
            pass
    return found


def namespaces():
    """The network namespaces of all processes."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(os.readlink(link))
        except OSError:
            pass
    return found


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def cleanup(lab):
    """Nothing remains, however it ends. COMMAND and PROGRAM have children, of which one ignores
    SIGTERM.
    """
    for number, how in enumerate((None, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)):
        marker = 770000 + os.getpid() % 10000 * 10 + number
        stubborn = f"(trap '' TERM INT; sleep {marker}; sleep {marker}) & sleep {marker}"
        program = f"{stubborn} & readlink /proc/self/ns/net; " + ("sleep 0.3" if how is None else f"sleep {marker}")
        # A group of its own, so that a signal reaches this process only.
        child = lab.start(TWO_PATHS, "--wait", "100 ms", "--at", "z", stubborn, program=program, process_group=0)
        own = child.stdout.readline().strip()
        name = how.name if how else "its end"
        if not own.startswith("net:["):
            raise Failed(f"no namespace: {own} {child.communicate(timeout=20)[1]}")
        if how is not None:
            lab.check(f"{name}: running before", len(processes_with(str(marker))),
                      until(lambda: len(processes_with(str(marker))) >= 5, 2) and own in namespaces())
            child.send_signal(how)
        begin = time.monotonic()
        child.wait(timeout=20)
        lab.check(f"{name}: seconds to the end", round(time.monotonic() - begin, 1), time.monotonic() - begin < 9, pace=True)
        gone = until(lambda: not processes_with(f"sleep {marker}") and own not in namespaces(), 3)
        lab.check(f"{name}: processes left", processes_with(f"sleep {marker}"), gone)
        child.stdout.close(), child.stderr.close()
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if " /etc/hosts " in line]
    lab.check("mounts left", mounts, not mounts or "tmp" not in mounts[0])


def user(lab):
    """Without root."""
    if os.geteuid() != 0:
        raise Unavailable("every case runs without root already")
    with tempfile.TemporaryDirectory(prefix="manypath-test-") as directory:
        os.chmod(directory, 0o755)
        binary, file = Path(directory, "manypath"), Path(directory, "scenario.toml")
        shutil.copy(lab.options.binary, binary)
        file.write_text(TWO_PATHS)
        # In mounts of their own, users get a device that they may open.
        os.mknod(f"{directory}/tun", stat.S_IFCHR | 0o666, os.makedev(10, 200))
        os.chmod(f"{directory}/tun", 0o666)
        script = (f"mount --bind {directory}/tun /dev/net/tun &&"
                  " exec setpriv --reuid 65534 --regid 65534 --clear-groups -- ")
        words = ["unshare", "--mount", "sh", "-c"]
        probe = subprocess.run([*words, script + "unshare --user --net sh -c ': <>/dev/net/tun'"], capture_output=True,
                               text=True, cwd="/")
        if probe.returncode != 0:
            raise Unavailable(f"users may not make namespaces: {probe.stderr.strip()}")
        command = f"{binary} emulate {file} --quiet --at z 'sleep 100' --wait 100ms -- getent hosts z-2"
        done = subprocess.run([*words, script + command], capture_output=True, text=True, cwd="/", timeout=20)
        lab.check("exit code", (done.returncode, done.stderr.strip()), done.returncode == 0)
        lab.check("z-2", done.stdout.split()[:1], done.stdout.split()[:1] == ["10.77.2.2"])


CASES = {"delay": delay, "rate": rate, "loss": loss, "outage": outage, "perf": perf, "mptcp": mptcp, "iperf3": iperf3, **comparison.CASES,
         "packet-sizes": packet_sizes, "names": names, "exit-codes": exit_codes, "cleanup": cleanup, "user": user}
SHOWN = {Verdict.GOOD: "ok     ", Verdict.LATE: "LATE   ", Verdict.WRONG: "FAILED "}


def unavailable():
    """Why nothing can run here; None if it can."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun"
    if shutil.which("ip") is None:
        return "needs the command ip (Debian: iproute2)"
    if os.geteuid() != 0:
        return "needs root"
    return None


def run(name, options):
    """Runs a case and prints its outcome: its verdict, or None if it was skipped."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="manypath-test-") as directory:
        lab = Lab(options, Path(directory))
        try:
            CASES[name](lab)
        except Unavailable as why:
            print(f"SKIPPED {name}: {why}", flush=True)
            return None
        except (Failed, subprocess.TimeoutExpired, IndexError) as why:
            lab.check("the case went on", repr(why), False)
    verdict = judge([(is_right, pace) for *_, is_right, pace in lab.checks])
    print(f"{SHOWN[verdict]} {name} ({time.monotonic() - begin:.1f} s)")
    for what, value, is_right, _ in lab.checks:
        if not is_right or options.verbose:
            print(f"    {'  ' if is_right else '! '}{what}: {value}")
    sys.stdout.flush()
    return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog="cases: " + ", ".join(CASES))
    add_binary(parser)
    parser.add_argument("--only", action="append", metavar="NAME", choices=list(CASES), help="runs this case; repeatable")
    parser.add_argument("--verbose", "-v", action="store_true", help="prints the checks that passed, too")
    add_require(parser)
    options = parser.parse_args()
    if why := unavailable():
        return skip(options, f"the tests of manypath emulate: {why}")
    begin, results = time.monotonic(), {}
    for name in options.only or CASES:
        results[name] = run(name, options)
    late = [name for name, verdict in results.items() if verdict is Verdict.LATE]
    command = [sys.executable, __file__, "--binary", options.binary, *["--require"] * options.require, "--only"]
    bad = [name for name, verdict in results.items() if verdict is Verdict.WRONG]
    bad += settle(late, lambda name: run(name, options), lambda name: [*command, name])
    skipped = sum(verdict is None for verdict in results.values())
    print(f"{len(results) - skipped - len(bad)} of {len(results)} cases passed in"
          f" {time.monotonic() - begin:.0f} s" + (f"; failed: {', '.join(bad)}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
