"""The interpreter is free while runs compute."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from manypath import sim

SCENARIO = {
    "transfer": {"size": "5 MB"},
    "path": [{"rate": "10 Mbit/s", "delay": "20 ms", "loss": "1 %"}] * 2,
}

SEEDS = 200
"""Runs of a thread: they take about a second."""


class Native(threading.Thread):
    """Watches the native threads of runs: their processor time, and their time without one."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, tuple[float, float]] = {}
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(0.01):
            for task in Path("/proc/self/task").iterdir():
                try:
                    if (task / "comm").read_text() == "manypath\n":
                        computed, queued, _ = map(int, (task / "schedstat").read_text().split())
                        self.seen[task.name] = (computed / 1e9, queued / 1e9)
                except OSError:
                    pass  # the thread has just ended


def runs_per_second(threads: int, call: Callable[[], object]) -> float:
    """So many runs a second do Python threads that each make this call of SEEDS runs.

    Other programs may have the processors meanwhile. So this is the runs for each second of
    processor time, times the number of threads that could compute at a time: with a lock around the
    calls it would be one.
    """
    seconds = [0.0] * threads

    def work(number: int) -> None:
        began = time.perf_counter()
        call()
        seconds[number] = time.perf_counter() - began

    native = Native()
    native.start()
    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    native.is_over.set()
    native.join()
    computed = sum(computed for computed, _ in native.seen.values())
    queued = sum(queued for _, queued in native.seen.values())
    at_a_time = threads * (computed + queued) / sum(seconds)
    return threads * SEEDS / computed * at_a_time


def one_job() -> None:
    sim.run(SCENARIO, seeds=SEEDS, jobs=1)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two processors")
def test_two_threads_do_twice_the_runs() -> None:
    # What shares a core or a cache with this process disturbs, too: the best of some tries counts.
    ratios = []
    for _ in range(5):
        ratios.append(runs_per_second(2, one_job) / runs_per_second(1, one_job))
        if ratios[-1] >= 1.8:
            break
    print(f"two threads do {ratios[-1]:.2f} times the runs of one")
    assert max(ratios) >= 1.8, ratios


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_measure_sees_a_lock() -> None:
    lock = threading.Lock()

    def locked() -> None:
        with lock:
            one_job()

    ratios = []
    for _ in range(5):
        ratios.append(runs_per_second(2, locked) / runs_per_second(1, locked))
        if ratios[-1] < 1.6:
            break
    assert min(ratios) < 1.6, ratios


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
