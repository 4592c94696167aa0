"""`manypath send` and `manypath recv` on loopback addresses, with a relay between them."""

import hashlib
import json
import os
import subprocess
import threading
import time
from pathlib import Path

ADDRESSES = ("127.0.0.1", "127.0.0.2")
TOKEN = "correct horse battery"
LIMIT_S = 50  # of a whole transfer


class Failed(Exception):
    """A case could not go on."""


def make_file(path, size):
    """A file of random bytes; its SHA-256."""
    content = os.urandom(size)
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def read_lines(pipe, lines):
    """Collects the lines of a pipe."""
    for line in pipe:
        lines.append(line.rstrip("\n"))


class Process:
    """A command whose output is read line by line."""

    def __init__(self, command, environment=()):
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, env=os.environ | dict(environment))
        self.out, self.err = [], []
        self.readers = [threading.Thread(target=read_lines, args=pair, daemon=True)
                        for pair in ((self.child.stdout, self.out), (self.child.stderr, self.err))]
        for reader in self.readers:
            reader.start()

    @property
    def code(self):
        """The exit code, None while it runs."""
        return self.child.poll()

    def wait(self, timeout):
        """Waits for the end; the exit code, or None if it still runs."""
        try:
            self.child.wait(timeout)
            for reader in self.readers:
                reader.join(5)
        except subprocess.TimeoutExpired:
            pass
        return self.code

    def kill(self):
        """Ends it now."""
        if self.code is None:
            self.child.kill()
        self.wait(5)

    def said(self):
        """All of its standard error."""
        return "\n".join(list(self.err))

    def record(self, key):
        """The last JSON object of its output that has this key, or {}."""
        for line in reversed(list(self.out)):
            record = json.loads(line)
            if key in record:
                return record
        return {}


class Transfer:
    """A receiver, and once started a sender. Use it as a context manager."""

    def __init__(self, options, directory, size, receive=(), insecure=False):
        """`receive`: options of the receiver."""
        self.binary, self.dir = options.binary, Path(directory)
        self.source, self.stored = self.dir / "the name of the file.bin", self.dir / "received"
        self.digest, self.key_log = make_file(self.source, size), self.dir / "keys.log"
        self.stored.mkdir()
        self.send, self.insecure = None, ["--insecure"] if insecure else []
        self.environment = {"SSLKEYLOGFILE": str(self.key_log), "MANYPATH_TOKEN": TOKEN}
        command = [self.binary, "recv", "--once", "--json", "--port", "0", "--listen", ",".join(ADDRESSES),
                   "--dir", str(self.stored), *self.insecure, *receive]
        self.recv = Process(command, self.environment.items())
        until = time.monotonic() + 20
        while not self.recv.record("ticket"):
            if time.monotonic() > until or self.recv.code is not None:
                raise Failed(f"the receiver does not listen: {self.recv.said()}")
            time.sleep(0.02)
        self.listening = self.recv.record("ticket")
        self.targets = [(host, self.listening["port"]) for host in ADDRESSES]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.recv, self.send):
            if process:
                process.kill()

    def start(self, dest, *words):
        """Starts the sender. It knows the receiver's key, as with a ticket."""
        peer = [] if self.insecure else ["--peer", self.listening["key"]]
        command = [self.binary, "send", "--json", *self.insecure, *peer, *words, str(self.source), dest]
        self.send = Process(command, self.environment.items())
        return self

    def wait(self, timeout=LIMIT_S):
        """Waits for both ends; their exit codes, None of those that still run."""
        return self.send.wait(timeout), self.recv.wait(5)

    def arrived(self):
        """Whether the file arrived unchanged, and nothing else."""
        names = [entry.name for entry in self.stored.iterdir()]
        if names != [self.source.name]:
            return False
        with open(self.stored / self.source.name, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.digest
