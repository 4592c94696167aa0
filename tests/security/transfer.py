"""`manypath send` and `manypath recv` on loopback addresses, with a relay between them."""

import hashlib
import os
from pathlib import Path

from process import Process

ADDRESSES = ("127.0.0.1", "127.0.0.2")
TOKEN = "correct horse battery"
LIMIT_S = 50  # of a whole transfer


def make_file(path, size):
    """A file of random bytes; its SHA-256."""
    content = os.urandom(size)
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


class Transfer:
    """A receiver, and once started a sender. Use it as a context manager."""

    def __init__(self, options, directory, size, receive=(), insecure=False):
        """`receive`: options of the receiver."""
        self.binary, self.dir = options.binary, Path(directory)
        self.source, self.stored = self.dir / "the name of the file.bin", self.dir / "received"
        self.digest, self.key_log = make_file(self.source, size), self.dir / "keys.log"
        self.stored.mkdir()
        self.send, self.insecure = None, ["--insecure"] if insecure else []
        self.environment = os.environ | {"SSLKEYLOGFILE": str(self.key_log), "MANYPATH_TOKEN": TOKEN}
        command = [self.binary, "recv", "--once", "--json", "--port", "0", "--listen", ",".join(ADDRESSES),
                   "--dir", str(self.stored), *self.insecure, *receive]
        self.recv = Process(command, self.environment)
        self.listening = self.recv.event("listening", 20)
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
        self.send = Process(command, self.environment)
        return self

    def wait(self, timeout=LIMIT_S):
        """Waits for both ends; their exit codes, None of those that still run."""
        return self.send.code_within(timeout), self.recv.code_within(5)

    def arrived(self):
        """Whether the file arrived unchanged, and nothing else."""
        names = [entry.name for entry in self.stored.iterdir()]
        if names != [self.source.name]:
            return False
        with open(self.stored / self.source.name, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.digest
