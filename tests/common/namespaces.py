"""Network namespaces, links between them, and processes inside; all of it goes away at exit."""

import atexit
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from failure import Failed, Unavailable
from process import Process

HERE = Path(__file__).resolve().parent
PREFIX = "manypath-test-"
# Cases of one name may run beside each other.
NUMBERS = itertools.count(1)


class Late(Exception):
    """The machine did something so late that the case shows nothing. It is run again."""


def sh(*words, check=True):
    """Runs a command; its standard output."""
    done = subprocess.run(words, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def check_machine():
    """Raises Unavailable unless namespaces can be made and links shaped here."""
    if sys.platform != "linux":
        raise Unavailable("network namespaces are Linux's")
    if os.geteuid() != 0:
        raise Unavailable("needs root, to make network namespaces")
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            raise Unavailable(f"needs the command {tool!r} (Debian: iproute2)")
    probe = f"{PREFIX}{os.getpid()}-probe"
    try:
        sh("ip", "netns", "add", probe)
        sh("ip", "-n", probe, "link", "add", "name", "probe0", "type", "veth", "peer", "name", "probe1")
        sh("tc", "-n", probe, "qdisc", "add", "dev", "probe0", *tbf("1mbit"))
    except Failed as why:
        raise Unavailable(str(why)) from None
    finally:
        sh("ip", "netns", "del", probe, check=False)


def tbf(rate):
    """The words that shape a device to `rate`, in Mbit/s or kbit/s: at most 50 ms in the queue. Bursts are of 32 KiB, above
    100 Mbit/s of 2.6 ms: a machine that looks after the queue less often could not reach the rate."""
    fast = re.fullmatch(r"(\d+)mbit", rate)
    burst = 32 * max(100, int(fast[1]) if fast else 0) // 100
    return ("root", "tbf", "rate", rate, "burst", f"{burst}kb", "latency", "50ms")


def remove_leftovers():
    """Removes the namespaces of runs that were killed before they could do it."""
    for line in sh("ip", "netns", "list", check=False).splitlines():
        name = line.split()[0]
        owner = re.fullmatch(re.escape(PREFIX) + r"(\d+)-.*", name)
        if owner and not Path("/proc", owner[1]).exists():
            sh("ip", "netns", "del", name, check=False)


class Lab:
    """The namespaces, processes and files of one case. Use it as a context manager."""

    def __init__(self, name, work_dir=None):
        self.name = f"{next(NUMBERS)}-{name}"
        self.closed = False
        self.namespaces = []
        self.processes = []
        self.anchors = {}
        self.dir = Path(tempfile.mkdtemp(prefix=PREFIX, dir=work_dir))
        atexit.register(self.close)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the processes, then removes namespaces and files. Harmless if repeated."""
        self.closed = True
        for process in self.processes:
            process.kill()
        for namespace in self.namespaces:
            sh("ip", "netns", "del", namespace, check=False)
        shutil.rmtree(self.dir, ignore_errors=True)
        self.processes, self.namespaces = [], []
        atexit.unregister(self.close)

    def host(self, name):
        """A namespace with loopback up; its full name."""
        if self.closed:
            raise Failed("stopped")
        full = f"{PREFIX}{os.getpid()}-{self.name}-{name}"
        sh("ip", "netns", "add", full)
        self.namespaces.append(full)
        sh("ip", "-n", full, "link", "set", "lo", "up")
        return full

    def veth(self, left, left_dev, left_ip, right, right_dev, right_ip, rate=None):
        """A link between two hosts, shaped to `rate` each way."""
        sh("ip", "link", "add", "name", left_dev, "netns", left, "type", "veth",
           "peer", "name", right_dev, "netns", right)
        for host, dev, ip in ((left, left_dev, left_ip), (right, right_dev, right_ip)):
            self.configure(host, dev, ip, rate)

    def configure(self, host, dev, ip, rate=None):
        """Gives a device its address (with prefix length) and rate, and sets it up."""
        sh("ip", "-n", host, "addr", "add", ip, "dev", dev)
        if rate:
            sh("tc", "-n", host, "qdisc", "add", "dev", dev, *tbf(rate))
        sh("ip", "-n", host, "link", "set", dev, "up")

    def wire(self, left, left_dev, left_ip, right, right_dev, right_ip, rate, *options):
        """A link that also delays, loses or translates addresses: two TUN devices and `wire.py`
        between them. The process is returned."""
        via = self.host(f"wire-{left_dev}")
        program = self.spawn(via, [sys.executable, str(HERE / "wire.py"), left_dev, right_dev, *options])
        program.wait_line("ready", 10)
        for host, dev, ip in ((left, left_dev, left_ip), (right, right_dev, right_ip)):
            sh("ip", "-n", via, "link", "set", dev, "netns", host)
            sh("ip", "-n", host, "link", "set", dev, "txqueuelen", "5000")
            self.configure(host, dev, ip, rate)
        return program

    def route(self, host, *words):
        """Adds a route."""
        sh("ip", "-n", host, "route", "add", *words)

    def rule(self, host, *words):
        """Adds a rule of policy routing."""
        sh("ip", "-n", host, "rule", "add", *words)

    def forward(self, host):
        """Makes a host a router."""
        sh("ip", "netns", "exec", host, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    def sent_bytes(self, host, dev):
        """What left through a device so far. It is read from outside: to start a program in the host for each look
        takes long on a busy machine, and would count as the time that is measured."""
        table = Path("/proc", str(self._anchor(host)), "net/dev").read_text(encoding="utf-8")
        for line in table.splitlines():
            name, _, counts = line.partition(":")
            if name.strip() == dev:
                return int(counts.split()[8])
        raise Failed(f"{host} has no device {dev}")

    def _anchor(self, host):
        """The number of a process in a host that does nothing."""
        if host not in self.anchors:
            process = Process(["ip", "netns", "exec", host, "sleep", "infinity"])
            self.processes.append(process)
            self.anchors[host] = process.child.pid
            until = time.monotonic() + 10
            # Before, it is ip, which may not be in the host yet.
            while Path("/proc", str(process.child.pid), "comm").read_text(encoding="utf-8") != "sleep\n":
                if time.monotonic() > until:
                    raise Failed(f"no program starts in {host}")
                time.sleep(0.01)
        return self.anchors[host]

    def link(self, host, dev, up):
        """Takes a device down or up."""
        sh("ip", "-n", host, "link", "set", dev, "up" if up else "down")

    def settle(self, host):
        """Waits until all devices of a host work: Linux may take seconds to notice that both ends of a
        link are up, while namespaces of other tests go."""
        until = time.monotonic() + 30
        while "NO-CARRIER" in sh("ip", "-n", host, "link"):
            if time.monotonic() > until:
                raise Failed(f"a link of {host} does not come up")
            time.sleep(0.02)

    def spawn(self, host, command):
        """Starts a command in a host."""
        self.settle(host)
        if self.closed:
            raise Failed("stopped")
        process = Process(["ip", "netns", "exec", host, *command])
        self.processes.append(process)
        return process
