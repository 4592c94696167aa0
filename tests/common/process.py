"""Programs that a test starts."""

import json
import os
import signal
import subprocess
import threading
import time

from failure import Failed


class Process:
    """A running command; its output is collected line by line with the time of arrival. As a context manager it ends
    the command."""

    def __init__(self, command, environment=None):
        self.begin = time.monotonic()
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True, env=environment,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.stdout, self.stderr, self._records = [], [], []
        self.cut = []  # lines without an end
        self._code = self.rss = self.cpu = self.ended = None
        self.news = threading.Condition()
        self.readers = [self._reader(self.child.stdout, self.stdout), self._reader(self.child.stderr, self.stderr)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def _reader(self, pipe, lines):
        def read():
            with pipe:
                for line in pipe:
                    self._add(line, lines)
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def _add(self, line, lines):
        with self.news:
            if not line.endswith("\n"):
                self.cut.append(line)
            lines.append((time.monotonic(), line.rstrip("\n")))
            self.news.notify_all()

    def wait_line(self, text, timeout):
        """The first line of standard output that contains `text`."""
        return self.wait_for(lambda: next((line for _, line in self.stdout if text in line), None), timeout,
                             f"printed no line with {text!r}")

    @property
    def records(self):
        """The lines of standard output so far, each of which is a JSON object."""
        with self.news:
            for _, line in self.stdout[len(self._records):]:
                # A process that is killed may leave half a line.
                if line not in self.cut:
                    self._records.append(json.loads(line))
            return self._records

    def event(self, name, timeout=60):
        """The first record of this event."""
        return self.wait_for(lambda: next((record for record in self.records if record.get("event") == name), None), timeout,
                             f"told of no {name!r}")

    def wait_for(self, probe, timeout, what):
        """Waits until `probe()`, asked at every new line, gives something."""
        until = time.monotonic() + timeout
        with self.news:
            while True:
                found = probe()
                if found is not None:
                    return found
                left = until - time.monotonic()
                if left <= 0 or (self.poll() is not None and not any(r.is_alive() for r in self.readers)):
                    raise Failed(f"{what}; exit code {self.code}; said: {self.said()}")
                self.news.wait(min(left, 0.2))

    def poll(self):
        """The exit code if it has ended. Peak memory and CPU time are known from then on."""
        with self.news:
            if self._code is None:
                pid, status, usage = os.wait4(self.child.pid, os.WNOHANG)
                if pid:
                    self._ended(status, usage)
            return self._code

    @property
    def code(self):
        """The exit code, None while it runs."""
        return self.poll()

    def _ended(self, status, usage):
        self._code = self.child.returncode = os.waitstatus_to_exitcode(status)
        self.rss, self.cpu = usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime
        self.ended = time.monotonic()

    def code_within(self, timeout):
        """Waits for the end; the exit code, None if it still runs."""
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > until:
                return None
            time.sleep(0.01)
        for reader in self.readers:
            reader.join(5)
        return self.code

    def wait(self, timeout=60):
        """Waits for the end; the exit code."""
        code = self.code_within(timeout)
        if code is None:
            raise Failed(f"still runs after {timeout:.0f} s; said: {self.said()}")
        return code

    def stop(self, timeout=60):
        """Ends it with SIGTERM, in order; the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def signal(self, number):
        """Sends a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.child.pid, number)

    def kill(self):
        """Ends it now."""
        if self.poll() is None:
            self.signal(signal.SIGKILL)
            self.wait(30)

    def said(self):
        """All of its standard error."""
        return "\n".join(line for _, line in list(self.stderr))
