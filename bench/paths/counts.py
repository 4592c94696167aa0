"""What `probes.py count` wrote: bytes that a host has received by each interface, over time."""
import bisect
import json
import shlex
from pathlib import Path

import emulation


def command(out):
    """The command of `sh` that counts in the background until emulate ends it. The command itself
    ends when that has begun.
    """
    Path(out).unlink(missing_ok=True)
    return f"({emulation.python('probes.py', 'count', out)}) & until [ -s {shlex.quote(str(out))} ]; do sleep 0.01; done"


class Counts:
    """Bytes received until each of many instants, by interface."""

    def __init__(self, file):
        self.at, self.totals = [], []
        text = Path(file).read_text(encoding="ascii") if Path(file).exists() else ""
        # The last line may have been cut off.
        for line in text.split("\n")[:-1]:
            at, totals = json.loads(line)
            # At the very end the interfaces go, one after the other.
            if not self.totals or totals.keys() >= self.totals[-1].keys():
                self.at.append(at)
                self.totals.append(totals)

    def first(self):
        """When the first bytes arrived; None if none did."""
        return next((at for at, totals in zip(self.at, self.totals) if any(totals.values())), None)

    def until(self, instant, interface=None):
        """Bytes received until an instant, of one interface or all; between two samples in
        proportion.
        """
        after = bisect.bisect_left(self.at, instant)
        if after in (0, len(self.at)):
            return self._total(min(after, len(self.at) - 1), interface)
        begin, end = self.at[after - 1], self.at[after]
        low, high = self._total(after - 1, interface), self._total(after, interface)
        return low + (high - low) * (instant - begin) / (end - begin)

    def between(self, begin, end, interface=None):
        return self.until(end, interface) - self.until(begin, interface)

    def _total(self, index, interface):
        totals = self.totals[index]
        return sum(totals.values()) if interface is None else totals.get(interface, 0)
