#!/usr/bin/env python3
"""Measures manypath and usrsctp side by side on loopback: throughput, and CPU seconds per gigabyte on both ends.

Each pair is one usrsctp transfer, then one manypath transfer, each of two processes on 127.0.0.1 over UDP encapsulation. The
CPU time of every process, user and system, whole life, comes from the kernel (wait4), the same for both stacks.
Needs Python 3.11, a C compiler, make and libusrsctp-dev. With --encrypted, rounds of quinn, manypath and manypath in plain;
needs cargo instead. README.md says how to read the result.
"""
import argparse
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

import encrypted

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
GRACE_S = 20  # beyond the transfer's own time, for connecting, draining and closing
GB = 1e9


class BenchError(Exception):
    """Something needed is missing or did not work; the message says what, and what to try."""


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("0.0.0.0", 0))
        return s.getsockname()[1]


class Process:
    """A child whose resource use is known when it has ended."""

    def __init__(self, command):
        self.command = [str(c) for c in command]
        self.child = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.out, self.status, self.cpu_s = b"", None, None

    def read_until(self, wanted, deadline):
        """Collects standard output until `wanted(output)`, the end of it, or the deadline."""
        fd = self.child.stdout.fileno()
        while not wanted(self.out):
            ready, _, _ = select.select([fd], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise BenchError(f"{self.describe()} did not answer in time")
            data = os.read(fd, 65536)
            if not data:
                return
            self.out += data

    def wait(self, deadline):
        while self.status is None:
            pid, status, usage = os.wait4(self.child.pid, os.WNOHANG)
            if pid != 0:
                self.status = self.child.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = usage.ru_utime + usage.ru_stime
            elif time.monotonic() > deadline:
                self.child.send_signal(signal.SIGKILL)
                deadline = float("inf")
                self.out += b"\n(killed: it did not end in time)"
            else:
                time.sleep(0.01)

    def describe(self):
        return " ".join(self.command)

    def failure(self):
        errors = self.child.stderr.read().decode(errors="replace").strip()
        return BenchError(f"{self.describe()}\n  exit code {self.status}: {errors or self.out.decode(errors='replace').strip()}")

    def close(self):
        if self.status is None:
            self.child.send_signal(signal.SIGKILL)
            self.wait(float("inf"))
        self.child.stdout.close()
        self.child.stderr.close()


def last_object(process):
    for line in reversed(process.out.decode(errors="replace").splitlines()):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and "bytes" in value:
            return value
    raise BenchError(f"{process.describe()} printed no result:\n  {process.out.decode(errors='replace').strip()}")


def transfer(server_command, client_command, seconds):
    """Runs one transfer and returns both processes, ended. Both servers announce that they listen, and serve once."""
    deadline = time.monotonic() + seconds + GRACE_S
    server, client = Process(server_command), None
    try:
        server.read_until(lambda out: b"\n" in out, deadline)
        if not server.out:
            server.wait(deadline)
            raise server.failure()
        client = Process(client_command)
        client.read_until(lambda out: False, deadline)
        client.wait(deadline)
        if client.status != 0:
            raise client.failure()
        server.read_until(lambda out: False, deadline)
        server.wait(deadline)
        if server.status != 0:
            raise server.failure()
        return server, client
    finally:
        server.close()
        if client is not None:
            client.close()


def measure(stack, bits_per_second, size, server, client):
    return {
        "stack": stack,
        "mbit_per_s": bits_per_second / 1e6,
        "bytes": size,
        "sender_cpu_s_per_gb": client.cpu_s / (size / GB),
        "receiver_cpu_s_per_gb": server.cpu_s / (size / GB),
        "load": os.getloadavg()[0],
    }


def run_usrsctp(args):
    port, own = free_port(), free_port()
    crc = ["--verify-crc"] if args.verify_crc else []
    server, client = transfer(
        [args.usrsctp, "server", "--udp-port", port, *crc],
        [args.usrsctp, "client", "--udp-port", own, "--remote-udp-port", port, "-t", args.seconds, "-l", args.message_bytes, *crc],
        args.seconds)
    result = last_object(server)
    return measure("usrsctp", result["mbit_per_s"] * 1e6, result["bytes"], server, client)


def run_manypath(args):
    port = free_port()
    fill = {"port": str(port), "seconds": str(args.seconds)}
    server, client = transfer(
        [args.manypath, *args.manypath_server.format(**fill).split()],
        [args.manypath, *args.manypath_client.format(**fill).split()],
        args.seconds)
    result = last_object(client)
    return measure("manypath", result["goodput_bps"], result["bytes"], server, client)


STACKS = {"usrsctp": run_usrsctp, "manypath": run_manypath}
COLUMNS = [("mbit_per_s", "Mbit/s", "{:8.0f}"), ("sender_cpu_s_per_gb", "sender CPU s/GB", "{:8.2f}"),
           ("receiver_cpu_s_per_gb", "receiver CPU s/GB", "{:8.2f}")]


def both_ends(run):
    return run["sender_cpu_s_per_gb"] + run["receiver_cpu_s_per_gb"]


def build_usrsctp(out):
    missing = [tool for tool in ("make", "cc") if shutil.which(tool) is None]
    if missing:
        raise BenchError(f"not found: {', '.join(missing)}. On Debian: apt install build-essential libusrsctp-dev")
    probe = subprocess.run(["cc", "-x", "c", "-", "-lusrsctp", "-o", "/dev/null"], input="#include <usrsctp.h>\nint main(void){return 0;}",
                           capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise BenchError("libusrsctp is not installed. On Debian: apt install libusrsctp-dev")
    made = subprocess.run(["make", "-s", "-C", HERE, f"OUT={out}"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise BenchError(f"could not build the usrsctp program:\n{made.stderr.strip()}")
    return out / "usrsctp_bulk"


def find_manypath(path):
    if path is None or not os.access(path, os.X_OK):
        raise BenchError(f"no manypath program at {path}: build it with `cargo build --profile dist`, name it with --manypath, "
                         "or measure the other alone with --only usrsctp")
    return path


def summarise(runs):
    median = {}
    for stack in dict.fromkeys(r["stack"] for r in runs):
        own = [r for r in runs if r["stack"] == stack]
        median[stack] = {key: statistics.median(r[key] for r in own) for key, _, _ in COLUMNS}
        median[stack]["both_cpu_s_per_gb"] = statistics.median(both_ends(r) for r in own)
    summary = {"runs": runs, "median": median}
    if len(median) == 2:
        pairs = list(zip([r for r in runs if r["stack"] == "usrsctp"], [r for r in runs if r["stack"] == "manypath"]))
        summary["throughput_ratio"] = median["manypath"]["mbit_per_s"] / median["usrsctp"]["mbit_per_s"]
        summary["throughput_ratio_of_pairs"] = statistics.median(m["mbit_per_s"] / u["mbit_per_s"] for u, m in pairs)
        summary["cpu_ratio"] = median["manypath"]["both_cpu_s_per_gb"] / median["usrsctp"]["both_cpu_s_per_gb"]
    return summary


def row(name, values, load=None):
    cells = " ".join(f"{fmt.format(values[key]):>18}" for key, _, fmt in COLUMNS)
    return f"{name:<16} {cells} {'' if load is None else f'{load:6.1f}'}"


def print_summary(summary):
    for stack, values in summary["median"].items():
        print(row(f"{stack} median", values))
    if "cpu_ratio" in summary:
        print(f"\nmanypath / usrsctp: throughput {summary['throughput_ratio']:.2f} x (median of the pairs' ratios "
              f"{summary['throughput_ratio_of_pairs']:.2f} x), CPU per byte, both ends {summary['cpu_ratio']:.2f} x")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encrypted", action="store_true", help="compare with quinn, all encrypted, and with manypath in plain")
    parser.add_argument("--same-size", action="store_true", help="with --encrypted: IP packets of 1500 bytes for all")
    parser.add_argument("--quinn-binary", type=pathlib.Path, help="with --encrypted: the program of bench/quinn [default: builds it]")
    parser.add_argument("--require-encrypted", nargs=3, type=float, metavar=("THROUGHPUT", "CPU", "PLAIN"),
                        help="with --encrypted: fail unless the throughput is at least, and the CPU per byte below, these times "
                             "quinn's, and the throughput at least PLAIN times that in plain")
    parser.add_argument("--pairs", "--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5, help="length of each transfer")
    parser.add_argument("--manypath", type=pathlib.Path, default=ROOT / "target/dist/manypath", help="the program to measure")
    parser.add_argument("--only", choices=STACKS, help="measure one stack alone")
    parser.add_argument("--message-bytes", type=int, default=65536, help="message size of usrsctp (default: its best)")
    parser.add_argument("--verify-crc", action="store_true", help="make usrsctp verify checksums, which it skips on loopback")
    parser.add_argument("--require", nargs=2, type=float, metavar=("THROUGHPUT", "CPU"),
                        help="fail unless the throughput ratio is at least, and the CPU ratio below, these")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "target/bench", help="where to build the usrsctp program")
    parser.add_argument("--manypath-server", default="perf server --listen 127.0.0.1 --port {port} --once --json --insecure --set pmtu_max=1500", help=argparse.SUPPRESS)
    parser.add_argument("--manypath-client", default="perf client 127.0.0.1:{port} -t {seconds} --json --insecure --set pmtu_max=1500", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    args = parser.parse_args()
    if args.pairs < 1 or not 0 < args.seconds <= 600:
        parser.error("--pairs is at least 1, --seconds at most 600")
    if args.only is not None and args.require is not None:
        parser.error("--require compares two stacks, --only measures one")
    if args.encrypted and (args.only is not None or args.require is not None):
        parser.error("--only and --require are for the comparison with usrsctp")
    if not args.encrypted and (args.same_size or args.quinn_binary or args.require_encrypted):
        parser.error("--same-size, --quinn-binary and --require-encrypted need --encrypted")
    return args


def main_encrypted(args):
    try:
        args.manypath = find_manypath(args.manypath)
        args.quinn_binary = args.quinn_binary or encrypted.build_quinn(BenchError)
        summary = encrypted.run(sys.modules[__name__], args)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(summary, indent=1))
    else:
        encrypted.print_summary(summary)
    unmet = encrypted.unmet(summary, args.require_encrypted) if args.require_encrypted else []
    for requirement in unmet:
        print(f"bench: the requirement is not met: {requirement}", file=sys.stderr)
    return 1 if unmet else 0


def main():
    args = parse()
    if args.encrypted:
        return main_encrypted(args)
    stacks = [args.only] if args.only else list(STACKS)
    runs = []
    try:
        if "manypath" in stacks:
            args.manypath = find_manypath(args.manypath)
        if "usrsctp" in stacks:
            args.usrsctp = build_usrsctp(args.build.resolve())
        if not args.json:
            print(f"{'':<16} {' '.join(f'{title:>18}' for _, title, _ in COLUMNS)}   load", flush=True)
        for pair in range(args.pairs):
            for stack in stacks:
                run = STACKS[stack](args) | {"pair": pair + 1}
                runs.append(run)
                if not args.json:
                    print(row(f"{stack} {pair + 1}", run, run["load"]), flush=True)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    summary = summarise(runs)
    if args.json:
        print(json.dumps(summary, indent=1))
    else:
        print_summary(summary)
    if args.require and (summary["throughput_ratio"] < args.require[0] or summary["cpu_ratio"] >= args.require[1]):
        print(f"bench: the requirement is not met: throughput at least {args.require[0]:g} x, CPU below {args.require[1]:g} x",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
