#!/usr/bin/env python3
"""Boots a root directory with systemd, in systemd-nspawn, and tries the units of the package there.

For installs.py, which calls `units`. The script itself is what runs in the network of the booted system.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import inside  # noqa: E402
from debian import Missing  # noqa: E402
from failure import Failed, expect  # noqa: E402

ECHO, FORWARD = 7777, 8080
RELAY, LISTEN, CONNECT = "manypath-relay", "manypath-proxy-listen", "manypath-proxy-connect@home"
UNITS = (RELAY, LISTEN, CONNECT)
PASSWORD = "correct-horse-battery"
EXPOSURE_MAX = 3.0
BOOT_SECONDS = 120


class System:
    """A booted system; its network is loopback only."""

    def __init__(self, root):
        if shutil.which("systemd-nspawn") is None:
            raise Missing("systemd-nspawn is not installed")
        self.root, self.log = root, root.parent / "boot.log"
        words = ["systemd-nspawn", "--quiet", f"--directory={root}", "--boot", "--private-network", "--register=no",
                 "--keep-unit", "--link-journal=no", "--resolv-conf=off", "--timezone=off", "--console=read-only"]
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.leader = None

    def boot(self):
        """Waits until it is up."""
        until = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < until and self.child.poll() is None:
            self.leader = self.leader or init_below(self.child.pid)
            if self.leader:
                state = self.run("systemctl", "is-system-running", check=False).strip()
                if state in ("running", "degraded"):
                    return
            time.sleep(0.5)
        raise Missing(f"systemd does not boot here: {self.log.read_text(errors='replace')[-2000:]}")

    def run(self, *words, check=True):
        """What a command prints that runs in the system."""
        done = subprocess.run(["nsenter", f"--target={self.leader}", "--all", *map(str, words)], text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "SYSTEMD_PAGER": ""})
        if check and done.returncode != 0:
            journal = self.run("journalctl", "--no-pager", "-n", "60", check=False)
            raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}\n{journal}")
        return done.stdout

    def near(self, *words):
        """A process of this script in the network of the system."""
        return ["nsenter", f"--net=/proc/{self.leader}/ns/net", sys.executable, str(Path(__file__).resolve()),
                *map(str, words)]

    def wait_for(self, unit, state):
        for _ in range(100):
            if self.state(unit) == state:
                return
            time.sleep(0.1)
        raise RuntimeError(f"{unit} is {self.state(unit)}: {self.run('systemctl', 'status', unit, check=False)}")

    def state(self, unit):
        return self.run("systemctl", "is-active", unit, check=False).strip()

    def stop(self):
        """Powers it off."""
        if self.child.poll() is None:
            # Its shutdown; nspawn sends SIGRTMIN+4 to the system.
            self.child.terminate()
            try:
                self.child.wait(30)
            except subprocess.TimeoutExpired:
                if self.leader:
                    os.kill(self.leader, signal.SIGKILL)
                self.child.kill()
                self.child.wait(30)


def init_below(pid):
    """The process that is number 1 of its own namespace, below this one."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    for child in children.read_text().split() if children.exists() else []:
        try:
            status = Path(f"/proc/{child}/status").read_text()
            name = Path(f"/proc/{child}/comm").read_text().strip()
        except OSError:
            continue
        numbers = re.search(r"^NSpid:\s+(.*)$", status, re.M)[1].split()
        if len(numbers) > 1 and numbers[-1] == "1" and name == "systemd":
            return int(child)
        if found := init_below(child):
            return found
    return None


def write(root, name, text, mode=0o644):
    path = root / "etc/manypath" / name
    path.parent.mkdir(exist_ok=True)
    path.touch(mode)
    path.chmod(mode)
    path.write_text(text)


def units(root):
    """Starts and restarts each unit, uses it, and removes the package while they run."""
    system = System(root)
    echo = None
    try:
        system.boot()
        for unit in (RELAY, LISTEN):
            expect(system.state(unit) == "inactive", f"{unit} was started by the installation")
            said = system.run("systemctl", "is-enabled", unit, check=False).strip()
            expect(said == "disabled", f"{unit} is {said} by the installation")
            said = system.run("systemctl", "start", unit, check=False)
            expect("Assertion failed" in said, f"{unit} starts without its secret: {said}")
        configure(root)
        echo = subprocess.Popen(system.near("echo", ECHO))
        for unit in (RELAY, LISTEN):
            system.run("systemctl", "enable", "--now", unit)
            system.wait_for(unit, "active")
        told = ticket(system)
        write(root, "proxy-connect/home.ticket", told + "\n", 0o600)
        system.run("systemctl", "enable", "--now", CONNECT)
        exposures = []
        for unit in UNITS:
            system.wait_for(unit, "active")
            nobody(system, unit)
            said = system.run("systemd-analyze", "security", "--no-pager", unit)
            exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
            expect(exposure and float(exposure[1]) < EXPOSURE_MAX, f"{unit}: {said[-300:]}")
            exposures.append(exposure[1])
        use(system, root)
        restart(system, told)
        use(system, root)
        remove(system, root)
        return f"{', '.join(UNITS)}: exposure {', '.join(exposures)}"
    finally:
        if echo:
            echo.kill()
            echo.wait()
        system.stop()


def configure(root):
    """The files that an administrator writes."""
    write(root, "relay-users", f"ann:{PASSWORD}\n", 0o600)
    write(root, "relay.conf", 'OPTIONS="--json --listen 127.0.0.1 --allow-peer 127.0.0.0/8"\n')
    write(root, "proxy-token", "correct horse\n", 0o600)
    write(root, "proxy-listen.conf", 'OPTIONS="--json --listen 127.0.0.1"\n')
    write(root, "proxy-connect/home.conf", f'OPTIONS="-L {FORWARD}:127.0.0.1:{ECHO}"\n')


def said(system, unit):
    """The lines that the last run of a unit printed."""
    invocation = system.run("systemctl", "show", "--property=InvocationID", "--value", unit).strip()
    return system.run("journalctl", "--no-pager", "-o", "cat", f"_SYSTEMD_INVOCATION_ID={invocation}").splitlines()


def ticket(system):
    for _ in range(100):
        for line in said(system, LISTEN):
            if line.startswith("{") and (record := json.loads(line)).get("event") == "listening":
                expect(not any("Note:" in line for line in said(system, LISTEN)), f"{said(system, LISTEN)}")
                return record["ticket"]
        time.sleep(0.1)
    raise RuntimeError(f"no ticket: {said(system, LISTEN)}")


def nobody(system, unit):
    """The unit's process is no privileged user, and may do nothing that others may not."""
    pid = system.run("systemctl", "show", "--property=MainPID", "--value", unit).strip()
    status = system.run("cat", f"/proc/{pid}/status")
    users = re.search(r"^Uid:\s+(.*)$", status, re.M)[1].split()
    expect("0" not in users, f"{unit} runs as {users}")
    for kind in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
        mask = re.search(rf"^{kind}:\s+(\w+)$", status, re.M)[1]
        expect(int(mask, 16) == 0, f"{unit}: {kind} {mask}")
    expect(re.search(r"^NoNewPrivs:\s+1$", status, re.M) and re.search(r"^Seccomp:\s+2$", status, re.M), status)


def use(system, root):
    done = subprocess.run(system.near("use", root), text=True, timeout=180, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        lines = {unit: said(system, unit)[-10:] for unit in UNITS}
        raise RuntimeError(f"the units do not work: {done.stdout}\n{json.dumps(lines, indent=2)}")


def restart(system, told):
    """A restarted far side is the same for its clients; a killed process comes back."""
    system.run("systemctl", "restart", LISTEN)
    system.wait_for(LISTEN, "active")
    expect(ticket(system) == told, "another ticket after a restart")
    before = system.run("systemctl", "show", "--property=MainPID", "--value", RELAY)
    system.run("systemctl", "kill", "--signal=KILL", RELAY)
    time.sleep(2.5)
    system.wait_for(RELAY, "active")
    expect(system.run("systemctl", "show", "--property=MainPID", "--value", RELAY) != before, "it was not killed")


def remove(system, root):
    """The package goes while its units run."""
    system.run("dpkg", "-r", "manypath")
    for unit in UNITS:
        expect(system.state(unit) in ("inactive", "failed"), f"{unit} still runs")
    system.run("dpkg", "-P", "manypath")
    places = ("etc/manypath", "var/lib/manypath-proxy-listen", "var/lib/private/manypath-proxy-listen")
    rest = [place for place in places if (root / place).exists() or (root / place).is_symlink()]
    rest += [str(path) for path in (root / "etc/systemd/system").rglob("*manypath*")]
    expect(not rest, f"left behind: {rest}")


# In the network of the system


def try_units(root):
    """Through the forward of the two proxies to the echo server, and through the relay."""
    inside.echoed(FORWARD)
    inside.relayed(root, f"turn:ann:{PASSWORD}@127.0.0.1")


def main():
    if sys.argv[1] == "echo":
        inside.echo(inside.socket.create_server(("127.0.0.1", int(sys.argv[2]))))
    try:
        try_units(Path(sys.argv[2]))
    except (Failed, OSError, KeyError, ValueError) as why:
        print(f"{type(why).__name__}: {why}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
