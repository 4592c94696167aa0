"""The systems that are compared, and one transfer by each over an emulated network."""
import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PORT = 9899
# Beyond the transfer's own time: connecting, closing, and draining what is queued, 8 MiB at a tenth of a link's rate.
GRACE_S = 60
# As large as the receive buffer of ours. With its own, of 256 KiB, it fills two paths of 20 Mbit/s by half.
USRSCTP_BUFFERS = 8 << 20
PEER_VARIABLE = "MANYPATH_BENCH_PEER"


class StackError(Exception):
    """A system cannot run here, or its description is wrong; the message says why."""


@dataclass
class Stack:
    """A system: what runs at both hosts, where {seconds}, {port}, {out} and {servers} stand for values."""
    name: str
    server: str
    client: str
    # All addresses are announced to MPTCP peers.
    mptcp: bool = False


@dataclass
class Outcome:
    """A transfer. Without an error, everything sent was delivered."""
    bytes: int = 0
    seconds: float = 0.0
    gap_s: float | None = None
    error: str | None = None
    # Of the emulated links: 99 of 100 packets were late by at most this, and its warnings.
    late_p99_s: float | None = None
    warnings: list = field(default_factory=list)


def ours(label, binary, arguments):
    """manypath with these arguments at both ends."""
    words = " ".join(shlex.quote(word) for word in shlex.split(arguments))
    own = shlex.quote(str(binary))
    return Stack(label, f"exec {own} perf server --once --json --quiet --port {{port}} {words} >{{out}}",
                 f"exec {own} perf client z:{{port}} -t {{seconds}} --json --quiet {words}")


def mptcp(label, control):
    """The kernel's MPTCP with this congestion control."""
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        raise StackError("the kernel has no MPTCP")
    if control not in available.read_text(encoding="ascii").split():
        raise StackError(f"the kernel has no {control}; try: modprobe tcp_{control}")
    program = f"exec {shlex.quote(sys.executable)} {shlex.quote(str(HERE / 'tcp.py'))}"
    return Stack(label, f"{program} server {{port}} {{out}}", f"{program} client z-1 {{port}} {{seconds}} {control}", mptcp=True)


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


def stop_emulation(child):
    """Ends an emulation, which ends all that runs in it."""
    child.send_signal(signal.SIGTERM)
    try:
        return child.communicate(timeout=15)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.communicate()


def transfer(stack, network, options, seed, directory):
    """One transfer by a stack over a network."""
    out, report = Path(directory, "server.out"), Path(directory, "report.json")
    for file in (out, report):
        file.unlink(missing_ok=True)
    values = {"{seconds}": f"{options.seconds:g}", "{port}": str(PORT), "{out}": shlex.quote(str(out))}

    def fill(command):
        for name, value in values.items():
            command = command.replace(name, value)
        # The shell at the host knows them.
        return command.replace("{servers}", f"$(echo $MANYPATH_ADDRESSES_Z | sed 's/,/:{PORT},/g'):{PORT}")
    command = [str(options.manypath), "emulate", str(network.file), "--quiet", "--seed", str(seed), "--report", str(report)]
    command += ["--mptcp"] if stack.mptcp else []
    command += ["--at", "z", fill(stack.server), "--", "sh", "-c", fill(stack.client)]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "LC_ALL": "C"})
    error = None
    try:
        printed, errors = child.communicate(timeout=options.seconds + GRACE_S)
        if child.returncode != 0:
            error = (errors.strip().splitlines() or [f"exit code {child.returncode}"])[0]
    except subprocess.TimeoutExpired:
        printed, errors = stop_emulation(child)
        error = f"not over {GRACE_S} s after its time"
    except BaseException:
        stop_emulation(child)
        raise
    seen = out.read_text(errors="replace") if out.exists() else ""
    outcome = result(seen) or result(printed)
    if outcome is None:
        outcome = Outcome(error=error or "no result was printed")
    outcome.error = outcome.error or error
    if report.exists():
        links = json.loads(report.read_text())
        outcome.late_p99_s, outcome.warnings = links["lateness"]["p99_s"], links["warnings"]
    return outcome
