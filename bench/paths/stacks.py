"""The systems that are compared, and one transfer by each over an emulated network."""
import json
import os
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import emulation

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PORT = 9899
# Beyond the transfer's own time: connecting, closing, and draining what is queued, 8 MiB at a tenth
# of a link's rate.
GRACE_S = 60
# As large as the receive buffer of ours. With its own, of 256 KiB, it fills two paths of 20 Mbit/s
# by half.
USRSCTP_BUFFERS = 8 << 20
PEER_VARIABLE = "MANYPATH_BENCH_PEER"
OURS = ["manypath=", "manypath-plain=--insecure", "manypath-cmt-pf=--preset cmt-pf"]
OTHERS = ["mptcp-cubic", "mptcp-bbr", "usrsctp"]


class StackError(Exception):
    """A system cannot run here, or its description is wrong; the message says why."""


@dataclass
class Stack:
    """A system: what runs at both hosts, where {seconds}, {port}, {out} and {servers} stand for
    values.
    """
    name: str
    server: str
    client: str
    # The client that sends messages of 1 kB at {rate} and prints their latency, if there is one.
    paced: str | None = None
    # All addresses are announced to MPTCP peers.
    mptcp: bool = False
    is_ours: bool = False


@dataclass
class Outcome:
    """A transfer. Without an error, everything sent was delivered."""
    bytes: int = 0
    seconds: float = 0.0
    gap_s: float | None = None
    # 99th percentile, of a paced client.
    latency_s: float | None = None
    error: str | None = None
    # Of the emulated links: 99 of 100 packets were late by at most this, and its warnings.
    late_p99_s: float | None = None
    warnings: list = field(default_factory=list)


def ours(label, binary, arguments):
    """manypath with these arguments at both ends."""
    words = " ".join(shlex.quote(word) for word in shlex.split(arguments))
    own = shlex.quote(str(binary))
    client = f"exec {own} perf client z:{{port}} -t {{seconds}} --json --quiet {words}"
    return Stack(label, f"exec {own} perf server --once --json --quiet --port {{port}} {words} >{{out}}", client,
                 paced=f"{client} --messages 1kB --rate {{rate}}bit/s", is_ours=True)


def mptcp(label, control):
    """The kernel's MPTCP with this congestion control."""
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        raise StackError("the kernel has no MPTCP")
    if control not in available.read_text(encoding="ascii").split():
        raise StackError(f"the kernel has no {control}; try: modprobe tcp_{control}")
    program = emulation.python("tcp.py")
    client = f"{program} client z-1 {{port}} {{seconds}} {control}"
    return Stack(label, f"{program} server {{port}} {{out}}", client, paced=f"{client} {{rate}}", mptcp=True)


def usrsctp(label, build):
    """usrsctp with CMT on all paths."""
    made = subprocess.run(["make", "-s", "-C", ROOT / "bench", f"OUT={build}"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise StackError("cannot build usrsctp_bulk; on Debian: apt install build-essential libusrsctp-dev")
    program = f"exec {shlex.quote(str(build / 'usrsctp_bulk'))}"
    options = f"--udp-port {{port}} --address 0.0.0.0 --cmt --buffers {USRSCTP_BUFFERS}"
    return Stack(label, f"{program} server {options} >{{out}}",
                 f"{program} client {options} --remote-udp-port {{port}} --remote $(getent ahostsv4 z-1 | head -n 1 | cut -d ' ' -f 1)"
                 " -t {seconds}")


def peers(text):
    """The systems of the environment: a line for each, NAME :: SERVER COMMAND :: CLIENT COMMAND."""
    found = []
    for line in filter(str.strip, text.splitlines()):
        parts = [part.strip() for part in line.split("::")]
        if len(parts) != 3 or not all(parts):
            raise StackError(f"{PEER_VARIABLE}: not NAME :: SERVER COMMAND :: CLIENT COMMAND: {line}")
        name, server, client = parts
        found.append(Stack(name, server if "{out}" in server else f"( {server} ) >{{out}}", client))
    return found


def result(text):
    """The last JSON object of a text that has bytes and seconds; None without one."""
    for line in reversed(text.splitlines()):
        try:
            value = json.loads(line)
            # Ours tells the directions apart.
            value = value.get("up") or value
            outcome = Outcome(int(value["bytes"]), float(value["seconds"]))
            gap = value.get("max_delivery_gap_s")
            outcome.gap_s = None if gap is None else float(gap)
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
        return outcome
    return None


def latency(text):
    """The message latency that a paced client printed, in seconds; None without one."""
    for line in reversed(text.splitlines()):
        try:
            return float(json.loads(line)["message_latency_p99_s"])
        except (ValueError, TypeError, KeyError):
            continue
    return None


def chosen(options):
    """The systems to compare. Those that cannot run here are named, and are errors if they were
    asked for.
    """
    wanted = {}
    for text in options.ours or OURS:
        label, _, arguments = text.partition("=")
        wanted[label] = lambda label=label, arguments=arguments: ours(label, options.manypath, arguments)
    for control in ("cubic", "bbr"):
        wanted[f"mptcp-{control}"] = lambda control=control: mptcp(f"mptcp-{control}", control)
    wanted["usrsctp"] = lambda: usrsctp("usrsctp", options.build.resolve())
    for stack in peers(os.environ.get(PEER_VARIABLE, "")):
        wanted[stack.name] = lambda stack=stack: stack
    for name in options.only or ():
        if name not in wanted:
            raise StackError(f"no system {name}; there are {', '.join(wanted)}")
    found, missing = [], {}
    for name in options.only or wanted:
        try:
            found.append(wanted[name]())
        except StackError as why:
            if options.only:
                raise
            missing[name] = why
    return found, missing


def fill(command, **values):
    """A command of a system with values in the place of names in braces."""
    for name, value in values.items():
        command = command.replace(f"{{{name}}}", str(value))
    # The shell at the host knows them.
    return command.replace("{servers}", f"$(echo $MANYPATH_ADDRESSES_Z | sed 's/,/:{PORT},/g'):{PORT}")


def transfer(stack, scenario, options, seed, directory, seconds, rate=None, beside=(), first=":"):
    """One transfer by a system from host a to host z of a scenario. With a rate in bit/s it sends
    messages of 1 kB.

    Commands `beside`, pairs of a host and a command, start before it. At host a, `first` runs just
    before the client.
    """
    out = Path(directory, "server.out")
    out.unlink(missing_ok=True)
    values = {"seconds": f"{seconds:g}", "port": PORT, "out": shlex.quote(str(out)), "rate": f"{rate or 0:.0f}"}
    client = fill(stack.paced if rate else stack.client, **values)
    done = emulation.emulate(options, scenario, seed, directory, f"{first}; {client}",
                             at=[("z", fill(stack.server, **values)), *beside], mptcp=stack.mptcp, host="a",
                             limit_s=seconds + GRACE_S)
    seen = out.read_text(errors="replace") if out.exists() else ""
    outcome = result(seen) or result(done.printed)
    if outcome is None:
        outcome = Outcome(error=done.error or "no result was printed")
    outcome.error = outcome.error or done.error
    outcome.latency_s = latency(done.printed)
    outcome.late_p99_s, outcome.warnings = done.late_p99_s, done.warnings
    return outcome
