"""The interpreter is free while runs compute."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from manypath import sim

SCENARIO = {
    "transfer": {"size": "5 MB"},
    "path": [{"rate": "10 Mbit/s", "delay": "20 ms", "loss": "1 %"}] * 2,
}

SEEDS = 20
"""Seeds of a call: it takes some tenths of a second."""


class Queueing(threading.Thread):
    """Adds up how long native threads of runs could go on but waited for a processor."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: dict[str, float] = {}
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(0.01):
            for task in Path("/proc/self/task").iterdir():
                try:
                    if (task / "comm").read_text() != "manypath\n":
                        continue
                    nanoseconds = int((task / "schedstat").read_text().split()[1])
                except OSError:
                    continue  # the thread has just ended
                self.waited[task.name] = nanoseconds / 1e9


def runs_per_second(threads: int) -> float:
    """So many runs a second do Python threads with one job each, if they get their processors.

    The time in which other programs had the processors does not count.
    """
    done = [0] * threads
    ends = time.perf_counter() + 2

    def work(number: int) -> None:
        while time.perf_counter() < ends:
            done[number] += len(sim.run(SCENARIO, seeds=SEEDS, jobs=1))

    queueing = Queueing()
    queueing.start()
    began = time.perf_counter()
    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - began
    queueing.is_over.set()
    queueing.join()
    return sum(done) / (seconds - sum(queueing.waited.values()) / threads)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two processors")
def test_two_threads_do_twice_the_runs() -> None:
    # What shares a core or a cache with this process still disturbs: the best of some tries counts.
    ratios = []
    for _ in range(5):
        ratios.append(runs_per_second(2) / runs_per_second(1))
        if ratios[-1] >= 1.8:
            break
    print(f"two threads do {ratios[-1]:.2f} times the runs of one")
    assert max(ratios) >= 1.8, ratios


def test_python_goes_on_while_a_run_computes() -> None:
    state = {"is_over": False, "counted": 0}

    def work() -> None:
        sim.run(SCENARIO | {"transfer": {"size": "60 MB"}}, jobs=1)
        state["is_over"] = True

    thread = threading.Thread(target=work)
    thread.start()
    while not state["is_over"]:
        state["counted"] += 1
    thread.join()
    assert state["counted"] > 10_000
