"""Experiments on a Dask cluster of real processes: two workers, and what happens to them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from manypath import SpreadError, _manypath, _spread, lab

from conftest import Command

CLAIMS = """
title = "made"
figure = "Figure 1"
samples = { every = "100 ms", seeds = 1 }

[[claim]]
id = "loss-costs"
says = "Loss takes time"
where = "here"
measure = "change"
field = "transfer_time_s"
at = { "path.1.loss" = "4 %", "transport.preset" = "sctp" }
to = { "path.1.loss" = "0 %", "transport.preset" = "sctp" }
above = "0 %"
"""

SCENARIO = """
seeds = 8
time_limit = "200 s"
transport.preset = "cmt"
transfer.size = "2 MB"

[[path]]
rate = "20 Mbit/s"
delay = "10 ms"

[[path]]
rate = "10 Mbit/s"
delay = "40 ms"

[sweep]
"path.1.loss" = ["0 %", "2 %", "4 %"]
"transport.preset" = ["sctp", "cmt"]
"""

# So long takes the slowest start of a process here, in seconds.
START_S = 30.0


def serve(*words: str, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )


class Cluster:
    """A scheduler and its workers, each a process."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.on = f"dask://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.start()

    def start(self) -> None:
        self.scheduler = serve(
            "scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"
        )
        self.processes.append(self.scheduler)

    def worker(self, preload: Path | None = None, **environment: str) -> subprocess.Popen[bytes]:
        more = ["--preload", str(preload)] if preload else []
        worker = serve(
            "worker",
            _spread.address(self.on),
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            *more,
            **environment,
        )
        self.processes.append(worker)
        return worker

    def wait_for(self, workers: int) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with contextlib.suppress(SpreadError), _spread.connect(self.on) as client:
                client.wait_for_workers(workers, timeout=START_S)
                return
        raise AssertionError("the cluster did not come up")

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.stop()


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    folder = tmp_path / "experiments" / "own" / "made"
    folder.mkdir(parents=True)
    (folder / "claims.toml").write_text(CLAIMS)
    (folder / "scenario.toml").write_text(SCENARIO)
    return tmp_path / "experiments"


def files(out: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (out / "made").iterdir()}


def alone(experiments: Path, out: Path) -> dict[str, bytes]:
    """The files of a run by one process."""
    lab.run("made", out=out, folder=experiments, jobs=1)
    return files(out)


def spread(
    cluster: Cluster, experiments: Path, out: Path, halfway: Callable[[], object] | None = None
) -> tuple[list[str], list[tuple[int, int]]]:
    """Makes the runs on the cluster, and collects them. What was told, and how far it was when."""
    told: list[str] = []
    seen: list[tuple[int, int]] = []

    def progress(done: int, planned: int) -> None:
        if halfway and seen and seen[-1][0] * 4 < planned <= done * 4:
            halfway()
        seen.append((done, planned))

    work = _manypath.Work(_manypath.Lab(experiments), ["made"])
    plan = _spread.Plan.of(work, ["made"], quick=False, seeds=None)
    with _spread.connect(cluster.on) as client:
        kept = _spread.run(
            client, work, plan, out, tell=told.append, progress=progress, patience_s=5
        )
    work.collect(kept, out)
    return told, seen


def test_two_workers_give_the_files_of_one_process(
    cluster: Cluster, experiments: Path, tmp_path: Path
) -> None:
    cluster.worker()
    cluster.worker()
    cluster.wait_for(2)
    told, seen = spread(cluster, experiments, tmp_path / "spread")
    assert told == []
    assert seen[-1] == (48, 48)
    assert files(tmp_path / "spread") == alone(experiments, tmp_path / "alone")
    # Again: nothing is made, not even with no worker left.
    for worker in cluster.processes[1:]:
        worker.kill()
    _, seen = spread(cluster, experiments, tmp_path / "spread")
    assert seen == [(48, 48)]


def test_a_worker_killed_in_mid_run_costs_no_result(
    cluster: Cluster, experiments: Path, tmp_path: Path
) -> None:
    victim = cluster.worker()
    cluster.worker()
    cluster.wait_for(2)
    told, seen = spread(
        cluster,
        experiments,
        tmp_path / "spread",
        halfway=lambda: victim.send_signal(signal.SIGKILL),
    )
    assert victim.wait(timeout=5) == -signal.SIGKILL
    assert seen[-1] == (48, 48)
    assert files(tmp_path / "spread") == alone(experiments, tmp_path / "alone")


def test_a_worker_of_another_version_gets_no_runs(
    cluster: Cluster, experiments: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.py"
    other.write_text(
        "from manypath import _manypath, _spread\n"
        "_manypath.engine_identity = lambda: '0.0.9-0'\n"
        "def never(*_): raise SystemExit('it made a run')\n"
        "_spread.make = never\n"
    )
    cluster.worker(preload=other)
    cluster.worker()
    cluster.wait_for(2)
    told, _ = spread(cluster, experiments, tmp_path / "spread")
    assert len(told) == 1 and "0.0.9-0" in told[0] and _manypath.engine_identity() in told[0]
    assert files(tmp_path / "spread") == alone(experiments, tmp_path / "alone")


def test_without_a_worker_that_can_the_reason_is_said(
    cluster: Cluster, experiments: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.py"
    other.write_text(
        "from manypath import _manypath\n_manypath.engine_identity = lambda: '0.0.9-0'\n"
    )
    cluster.worker(preload=other)
    cluster.wait_for(1)
    with pytest.raises(SpreadError, match="0.0.9-0"):
        spread(cluster, experiments, tmp_path / "spread")


def test_after_a_lost_scheduler_only_the_missing_runs_are_made(
    cluster: Cluster, experiments: Path, tmp_path: Path
) -> None:
    cluster.worker()
    cluster.worker()
    cluster.wait_for(2)
    with pytest.raises(SpreadError, match="the scheduler is lost; .* are kept"):
        spread(cluster, experiments, tmp_path / "spread", halfway=cluster.scheduler.kill)
    cluster.stop()
    cluster.start()
    cluster.worker()
    cluster.wait_for(1)
    _, seen = spread(cluster, experiments, tmp_path / "spread")
    assert seen[0][0] >= 12
    assert files(tmp_path / "spread") == alone(experiments, tmp_path / "alone")


def test_a_run_that_fails_three_times_is_named_with_its_command(
    cluster: Cluster, experiments: Path, tmp_path: Path
) -> None:
    poison = _manypath.Work(_manypath.Lab(experiments), ["made"]).units()[1]
    failing = tmp_path / "failing.py"
    tries = tmp_path / "tries"
    failing.write_text(
        "from manypath import _spread\n"
        # Dask runs this twice.
        "whole = _spread.whole = getattr(_spread, 'whole', _spread.make)\n"
        "def make(plan, tasks):\n"
        f"    if tasks[0] == {poison[0][0]!r}:\n"
        f"        open({str(tries)!r}, 'a').write('x')\n"
        "        raise MemoryError('out of memory')\n"
        "    return whole(plan, tasks)\n"
        "_spread.make = make\n"
    )
    cluster.worker(preload=failing)
    cluster.worker(preload=failing)
    cluster.wait_for(2)
    told, seen = spread(cluster, experiments, tmp_path / "spread")
    assert tries.read_text() == "xxx"
    [said] = told
    assert "out of memory" in said and poison[1] in said
    failures = [
        json.loads(line) for line in files(tmp_path / "spread")["failures.jsonl"].splitlines()
    ]
    assert len(failures) == len(poison[0])
    assert {failure["error"] for failure in failures} == {"failed 3 times: out of memory"}
    assert failures[0]["command"] == poison[1]
    # The others are there, and the next try is for these alone.
    _, seen = spread(cluster, experiments, tmp_path / "spread")
    assert seen[0] == (48 - len(poison[0]), 48)


def test_the_package_takes_a_client_or_an_address(
    cluster: Cluster, experiments: Path, tmp_path: Path
) -> None:
    cluster.worker()
    cluster.wait_for(1)
    [outcome] = lab.run("made", out=tmp_path / "spread", folder=experiments, client=cluster.on)
    assert outcome.judgements[0]["verdict"] == "holds"
    with _spread.connect(cluster.on) as client:
        assert lab.run("made", out=tmp_path / "again", folder=experiments, client=client) == [
            outcome
        ]


def test_the_command_spreads_its_runs(
    cluster: Cluster,
    experiments: Path,
    tmp_path: Path,
    manypath: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster.worker()
    cluster.worker()
    cluster.wait_for(2)
    out = tmp_path / "spread"
    monkeypatch.setenv("MANYPATH_PYTHON", sys.executable)
    done = manypath(
        "lab", "run", "made", "--experiments", experiments, "--out", out, "--on", cluster.on
    )
    assert done.returncode == 0, done.stderr
    assert "loss-costs" in done.stdout
    assert files(out) == alone(experiments, tmp_path / "alone")


def test_a_cluster_that_does_not_answer_is_an_error_with_a_remedy() -> None:
    with pytest.raises(SpreadError, match="dask scheduler"):
        _spread.connect("dask://127.0.0.1:1")
