"""A program in a terminal of its own: tmux without anybody's settings."""

import subprocess
import time

from failure import Failed
from measurement import until

TMUX = ["tmux", "-L", "manypath-live", "-f", "/dev/null"]


class Terminal:
    """A terminal of its own, with one program."""

    def __init__(self, places, command, size, environment=()):
        self.size = size
        self.name = f"t{time.monotonic_ns()}"
        environment = [*(f"{name}={value}" for name, value in places.items()), *environment]
        words = ["env", *environment, *command]
        line = " ".join(f"'{word}'" for word in words) + "; echo EXIT $?; exec sleep 60"
        self._tmux("new-session", "-d", "-s", self.name, "-x", str(size[0]), "-y", str(size[1]), line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([*TMUX, "kill-session", "-t", self.name], stderr=subprocess.DEVNULL)

    def _tmux(self, *words):
        return subprocess.run([*TMUX, *words], check=True, capture_output=True, text=True).stdout

    def press(self, *keys):
        self._tmux("send-keys", "-t", self.name, *keys)

    def seen(self, escapes=False):
        return self._tmux("capture-pane", "-p", *(["-e"] if escapes else []), "-t", self.name)

    def is_other_screen(self):
        return self._tmux("display-message", "-p", "-t", self.name, "#{alternate_on} #{cursor_flag}").split() == ["1", "0"]

    def shows(self, text, seconds=10):
        def there():
            return text in self.seen()
        there.__doc__ = f"the terminal shows {text!r}"
        try:
            return until(there, seconds)
        except Failed:
            raise Failed(f"no {text!r} within {seconds} s in:\n{self.seen()}") from None

    def said(self):
        """All lines so far, those that left the screen too, as the program wrote them."""
        lines = self._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", self.name).splitlines()
        return [line.rstrip() for line in lines]

    def wrapped(self):
        """The lines that the terminal had to break. Lines of progress are filled up with spaces to its width, which to
        tmux is one long line."""
        width = self.size[0]
        ends = {line: [line[end] for end in range(width - 1, len(line) - 1, width)] for line in self.said()}
        return [line for line, last in ends.items() if any(not c.isspace() for c in last)]
