#!/usr/bin/env python3
"""How well the machine itself keeps time: python3 tests/common/host_pace.py

A virtual machine shares its processors with others, and so does every process. What others take at a
moment makes a bound in time impossible to hold, whatever is measured. Run it while nothing of ours runs.
"""

import os
import subprocess
import sys
import time

# A processor that spins notes each pause of this length or longer, in seconds. Interrupts are shorter.
PAUSE = 0.0005
# Above this share of lost time, a machine does not measure bounds in time.
MOST_LOST = 0.01


def spin(processor, seconds):
    """The share of `seconds` that a busy loop on this processor was kept from running."""
    os.sched_setaffinity(0, {processor})
    lost, last = 0.0, time.perf_counter()
    end = last + seconds
    while last < end:
        now = time.perf_counter()
        if now - last >= PAUSE:
            lost += now - last
        last = now
    return lost / seconds


def lost(seconds=2):
    """The share of time that the machine keeps from busy loops, one on each processor; the worst of them."""
    loops = [subprocess.Popen([sys.executable, __file__, str(processor), str(seconds)], stdout=subprocess.PIPE, text=True)
             for processor in sorted(os.sched_getaffinity(0))]
    return max(float(loop.communicate()[0]) for loop in loops)


def stolen_ticks(path="/proc/stat"):
    """Clock ticks that the hypervisor gave to others while we wanted to run, and all ticks, since the start."""
    with open(path, encoding="ascii") as stat:
        ticks = [int(field) for field in stat.readline().split()[1:]]
    # Guests' ticks, the fields after "steal", are part of the user's.
    return ticks[7], sum(ticks[:8])


class Watch:
    """The share of processor time that was stolen from the machine, from its making on."""

    def __init__(self):
        self.began = stolen_ticks()

    def stolen(self):
        stolen, total = (now - before for now, before in zip(stolen_ticks(), self.began))
        return stolen / total if total else 0.0


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(spin(int(sys.argv[1]), float(sys.argv[2])))
    else:
        print(f"{lost():.1%} of the time was kept from a busy loop")
