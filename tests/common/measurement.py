"""A measurement over two paths of the loopback interface, for tests of what is shown meanwhile."""

import json
import os
import re
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from failure import Failed

HERE = ["127.0.0.11", "127.0.0.12"]
THERE = ["127.0.0.1", "127.0.0.2"]


class Late(Failed):
    """A bound in time was missed; a busy machine can be the reason."""


def expect_soon(took, seconds, what):
    """Expects that something took less than so many seconds."""
    if took >= seconds:
        raise Late(f"{what} after {took:.2f} s only")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(what, seconds=10, every=0.05):
    """The first true value of a function, and how many seconds it took."""
    begin = time.monotonic()
    while True:
        value = what()
        took = time.monotonic() - begin
        if value:
            return value, took
        if took > seconds:
            raise Failed(f"not within {seconds} s: {what.__doc__ or what}")
        time.sleep(every)


class Measurement:
    """`perf server`, and what `perf client` is to be called with. `with Measurement(binary) as it:`"""

    def __init__(self, binary):
        self.binary = str(Path(binary).resolve())
        self.started = []

    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="manypath-live-")
        self.folder = Path(self.scratch.name)
        # The sockets of this test's processes only: `top` looks into both places.
        self.places = {"XDG_RUNTIME_DIR": self.scratch.name, "TMPDIR": self.scratch.name}
        self.environment = {**os.environ, **self.places}
        server = subprocess.Popen([self.binary, "perf", "server", "--json", "--port", "0", "--listen", ",".join(THERE)],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.environment)
        self.started.append(server)
        self.port = json.loads(server.stdout.readline())["port"]
        self.server = server
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
        self.scratch.cleanup()

    def client_command(self, *options):
        to = ",".join(f"{ip}:{self.port}" for ip in THERE)
        return [self.binary, "perf", "client", to, "--bind", ",".join(HERE), "--rate", "40Mbit/s", *options]

    def client(self, *options):
        """Starts a client; what it prints is in `client.txt`."""
        with open(self.folder / "client.txt", "wb") as printed:
            process = subprocess.Popen(self.client_command(*options), stdout=printed, stderr=printed, env=self.environment)
        self.started.append(process)
        return process

    def printed(self, pattern):
        """What the client printed: the first group of a pattern, once it is there."""
        def there():
            return re.search(pattern, (self.folder / "client.txt").read_text())
        return until(there)[0].group(1)

    def ranks(self):
        """The ranks of the paths of the client, in order."""
        command = [self.binary, "path", "list", "--json"]
        listed = json.loads(subprocess.run(command, env=self.environment, check=True, capture_output=True).stdout)
        clients = [p for p in listed["processes"] if p["command"] == "perf client"]
        return [path["rank"] for p in clients for a in p["associations"] for path in a["paths"]]


def get(url, seconds=5):
    with urllib.request.urlopen(url, timeout=seconds) as answer:
        return answer.read().decode()
