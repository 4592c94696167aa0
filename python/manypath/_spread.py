"""Runs of the laboratory spread over the workers of a Dask cluster.

Dask schedules; this module says what there is to do, and keeps what was done. A task is a unit: runs that share work.
Before a worker gets one it proves that its engine is the client's, and plans the experiments once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _manypath
from ._errors import LabError, SpreadError

TRIES = 3
"""A unit that failed so often is given up."""

AHEAD = 3
"""How many units a thread of a worker has, the one that it makes included."""

POLL_S = 0.5
"""How often, in seconds, to look for workers that came or went."""


@dataclass(frozen=True)
class Plan:
    """What a worker needs to plan.

    Names of experiments, which of their runs, and their files if they are not built in.
    """

    ids: tuple[str, ...]
    quick: bool
    seeds: tuple[int, ...] | None
    files: tuple[tuple[str, bytes], ...] | None

    @classmethod
    def of(
        cls, work: _manypath.Work, names: Sequence[str], *, quick: bool, seeds: Sequence[int] | None
    ) -> Plan:
        files = None if work.folder is None else files_of(work.folder)
        return cls(tuple(names), quick, None if seeds is None else tuple(seeds), files)

    @property
    def name(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()[:32]


MOST_PLANS = 4
"""How many plans a worker keeps: of clients at the same time."""

# On a worker: what it has planned, by the plan's name, the newest last.
_planned: dict[str, _manypath.Work] = {}


def prepare(plan: Plan, engine: str) -> str:
    """On a worker: plans, if its engine is this one. Returns its engine."""
    own = _manypath.engine_identity()
    if own == engine and plan.name not in _planned:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in plan.files or ():
                file = Path(folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text)
            lab = _manypath.Lab(None if plan.files is None else folder)
            work = _manypath.Work(lab, plan.ids, quick=plan.quick, seeds=plan.seeds)
        _planned[plan.name] = work
        while len(_planned) > MOST_PLANS:
            del _planned[next(iter(_planned))]
    return own


def make(plan: str, tasks: tuple[str, ...]) -> list[str]:
    """On a worker: the results of a unit, as lines of a part."""
    lines: list[str] = _planned[plan].run(tasks)
    return lines


def files_of(folder: str | Path) -> tuple[tuple[str, bytes], ...]:
    """The files of a folder of experiments."""
    root = Path(folder)
    return tuple(
        (str(file.relative_to(root)), file.read_bytes())
        for file in sorted(root.rglob("*"))
        if file.is_file()
    )


def runs_of(work: _manypath.Work) -> int:
    """How many runs a plan has."""
    return sum(len(tasks) for tasks, _ in work.units())


def address(on: str) -> str:
    """The address of a scheduler for Dask: dask://HOST:PORT is its tcp://HOST:PORT."""
    return on.replace("dask://", "tcp://", 1)


class Spread:
    """The runs of a plan on their way through a cluster."""

    def __init__(
        self,
        client: Any,
        plan: Plan,
        work: _manypath.Work,
        kept: _manypath.Kept,
        *,
        patience_s: float,
        tell: Callable[[str], object],
        progress: Callable[[int, int], object],
    ) -> None:
        self.client, self.plan, self.kept = client, plan, kept
        self.engine = _manypath.engine_identity()
        self.patience_s, self.tell, self.progress = patience_s, tell, progress
        known = kept.known()
        self.open: deque[tuple[str, ...]] = deque()
        self.commands: dict[tuple[str, ...], str] = {}
        for tasks, command in work.units():
            if not known.issuperset(tasks):
                self.open.append(tuple(tasks))
                self.commands[tuple(tasks)] = command
        self.planned = runs_of(work)
        self.done = self.planned - sum(map(len, self.open))
        # Threads of the workers that proved themselves, and why others may not work.
        self.good: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        self.under_way: dict[Any, tuple[tuple[str, ...], frozenset[str]]] = {}
        self.failures: Counter[tuple[str, ...]] = Counter()
        self.over: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.seen_at = time.monotonic()

    def run(self) -> None:
        """Makes what is missing."""
        self.progress(self.done, self.planned)
        try:
            while self.open or self.under_way:
                self.meet()
                self.submit()
                for future in self.finished():
                    self.take(future)
                self.progress(self.done, self.planned)
        finally:
            with contextlib.suppress(Exception):
                self.client.cancel(list(self.under_way), force=True)

    def meet(self) -> None:
        """Looks who is there; newcomers prove themselves."""
        try:
            threads = self.client.nthreads()
        except (OSError, TimeoutError) as error:
            raise self.lost() from error
        if self.client.status != "running":
            if time.monotonic() - self.seen_at > self.patience_s:
                raise self.lost()
            return
        new = [
            worker for worker in threads if worker not in self.good and worker not in self.refused
        ]
        answers: dict[str, object] = {}
        if new:
            options = {"workers": new, "on_error": "return"}
            answers = self.client.run(prepare, self.plan, self.engine, **options)
        for worker, answer in answers.items():
            if answer == self.engine:
                self.good[worker] = threads[worker]
                continue
            why = f"{type(answer).__name__}: {answer}"
            if isinstance(answer, str):
                why = f"it has manypath {answer}, this is {self.engine}"
            self.refused[worker] = why
            self.tell(f"worker {worker} gets no runs: {why}")
        self.good = {worker: count for worker, count in self.good.items() if worker in threads}
        if self.good:
            self.seen_at = time.monotonic()
        elif time.monotonic() - self.seen_at > self.patience_s:
            reasons = [f"{worker}: {why}" for worker, why in self.refused.items()]
            what = f"no worker can make the runs: {'; '.join(reasons) or 'none came'}"
            raise SpreadError(f"{what}\n  try: install this version of manypath at each worker")
        for future, (tasks, allowed) in list(self.under_way.items()):
            if not allowed & self.good.keys():
                del self.under_way[future]
                self.client.cancel([future], force=True)
                self.open.appendleft(tasks)

    def lost(self) -> SpreadError:
        return SpreadError(
            f"the scheduler is lost; {self.done} of {self.planned} runs are kept in {self.kept.path}"
            "\n  try: start it again and repeat the command, which makes the others"
        )

    def submit(self) -> None:
        """Keeps the workers busy, and no more: what waits at a scheduler is lost with it."""
        allowed = frozenset(self.good)
        while self.open and len(self.under_way) < AHEAD * sum(self.good.values()):
            tasks = self.open.popleft()
            # Equal tasks of other clients have the same key; one that failed needs another.
            identity = f"{self.engine} {self.plan.name} {tasks} {self.failures[tasks]}"
            key = f"manypath-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"
            future = self.client.submit(
                make,
                self.plan.name,
                tasks,
                key=key,
                workers=list(allowed),
                allow_other_workers=False,
            )
            self.under_way[future] = (tasks, allowed)
            future.add_done_callback(self.over.put)

    def finished(self) -> Iterator[Any]:
        """Tasks that are over: waits for one, a while."""
        with contextlib.suppress(queue.Empty):
            yield self.over.get(timeout=POLL_S)
            while True:
                yield self.over.get_nowait()

    def take(self, future: Any) -> None:
        """Keeps what a task gave."""
        if future not in self.under_way:
            return
        tasks, _ = self.under_way.pop(future)
        if future.status == "finished":
            lines = future.result()
            errors = [line["error"] for line in map(json.loads, lines) if "error" in line]
            if errors and self.again(tasks, errors[0]):
                return
            self.kept.push(lines)
        elif future.status == "error":
            why = future.exception()
            # The scheduler had tried it on several workers, each of which died.
            if type(why).__name__ == "KilledWorker":
                self.failures[tasks] = TRIES
                why = "each worker that made it died"
            if self.again(tasks, str(why)):
                return
            self.kept.fail(list(tasks), f"failed {TRIES} times: {why}")
        else:
            # Lost with its scheduler, or cancelled.
            self.open.appendleft(tasks)
            return
        self.done += len(tasks)
        future.release()

    def again(self, tasks: tuple[str, ...], why: str) -> bool:
        """Has a task that failed made again, if it may be."""
        self.failures[tasks] += 1
        if self.failures[tasks] >= TRIES:
            self.tell(f"failed {TRIES} times: {why}\n  repeat: {self.commands[tasks]}")
            return False
        self.open.append(tasks)
        return True


def connect(on: str) -> Any:
    """A client of the scheduler at dask://HOST:PORT."""
    try:
        import distributed
    except ImportError:
        raise SpreadError("Dask is not installed\n  try: pip install 'manypath[dask]'") from None
    try:
        client: Any = distributed.Client
        return client(address(on), timeout="5s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as why:
        raise SpreadError(
            f"no scheduler answers at {on}: {why}\n  try: dask scheduler --host HOST --port PORT"
        ) from None


def run(
    client: Any,
    work: _manypath.Work,
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    tell: Callable[[str], object],
    progress: Callable[[int, int], object],
    patience_s: float = 60.0,
) -> _manypath.Kept:
    """Makes the runs that are missing in a file below `out`, which has all of them then."""
    kept = work.open(Path(out) / "tasks")
    Spread(client, plan, work, kept, tell=tell, progress=progress, patience_s=patience_s).run()
    return kept


def main() -> int:
    """For `manypath lab run --on`: makes what is missing in the file that the command then collects."""
    asked = json.load(sys.stdin)

    def tell(text: str) -> None:
        print(f"manypath: {text}", file=sys.stderr)

    def progress(done: int, planned: int) -> None:
        print(json.dumps([done, planned]), flush=True)

    try:
        names, extent = asked["ids"], {"quick": asked["quick"], "seeds": asked["seeds"]}
        work = _manypath.Work(_manypath.Lab(asked["experiments"]), names, **extent)
        with connect(asked["on"]) as client:
            run(
                client,
                work,
                Plan.of(work, names, **extent),
                asked["out"],
                tell=tell,
                progress=progress,
            )
    except (SpreadError, LabError) as why:
        tell(str(why))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
