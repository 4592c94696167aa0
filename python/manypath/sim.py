"""Runs of the simulator: scenarios in, results out.

    >>> from manypath import sim
    >>> runs = sim.run("two-paths.toml", seeds=30, sweep={"path.2.loss": ["0 %", "1 %"]})
    >>> frame = runs.to_pandas()
    >>> frame.groupby("path.2.loss")["transfer_time_s"].mean()

A run is a function of its scenario and seed: the same ones give the same result on any machine and
with any number of jobs.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from . import _extras, _html, _manypath, _wait
from . import trace as _trace
from ._errors import Interrupted, RunError
from ._wait import Progress
from .policy import CongestionControl, Scheduler

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["Runs", "Scenario", "run", "trace"]

Value: TypeAlias = object
"""A value of a scenario: a text with its unit ("10 Mbit/s"), a number, a bool, a list or a dict."""

Seeds: TypeAlias = int | str | Iterable[int]
"""How many seeds (30: seeds 1 to 30), a range ("1..60"), or the seeds themselves."""


class Scenario:
    """A scenario: what is sent over which network, with which transport, and what is swept.

    docs/scenarios.md describes the keys. Settings change this object; :func:`run` never does.
    """

    def __init__(self, scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario) -> None:
        """Reads a file, or a mapping with the keys of one; of a Scenario it makes a copy.

        Raises ScenarioError if something in it is wrong.
        """
        self._native: _manypath.Scenario
        if isinstance(scenario, Scenario):
            self._native = scenario._native.copy()
        elif isinstance(scenario, Mapping):
            self._native = _manypath.Scenario.from_dict(scenario)
        else:
            self._native = _manypath.Scenario.load(scenario)

    @classmethod
    def parse(cls, text: str, name: str = "scenario") -> Scenario:
        """Reads the text of a file in TOML. `name` is what errors call it."""
        made = cls.__new__(cls)
        made._native = _manypath.Scenario.parse(text, name)
        return made

    def set(self, name: str, value: Value) -> None:
        """Sets a value by its dotted name, such as ``path.2.loss``, as ``--set`` does.

        Elements of lists are counted from 1, or go by their name. A name with ``sweep.`` before it
        sets the list of values that are swept.
        """
        self._native.set(name, value)

    @property
    def seeds(self) -> list[int]:
        """The seeds that each point runs with."""
        return self._native.seeds

    def points(self) -> list[dict[str, str]]:
        """The combinations of swept values, in the order in which they run.

        Raises ScenarioError if one of them cannot be run.
        """
        return [dict(point) for point in self._native.points()]

    def explain(self, point: int = 1) -> str:
        """What ``manypath sim check`` prints: topology, derived values, parameters.

        `point` counts from 1.
        """
        return self._native.explain(point)


class Runs(Sequence[dict[str, Any]]):
    """The results of runs, one dict a run, in the order of points and seeds.

    A dict is the object that ``manypath sim run --json`` prints for the run. As a table, every run
    is a row with the columns of ``manypath sim run --parquet``: the swept parameters under their
    names, `seed`, and the fields of the result, those of the paths as ``path1_…``, ``path2_…``.

    The table follows the Arrow PyCapsule interface, so any library that does can take this object
    as it is, for instance ``polars.DataFrame(runs)`` or ``pyarrow.table(runs)``.
    """

    def __init__(self, native: _manypath.Runs) -> None:
        """Only for this package."""
        self._native = native

    @property
    def scenario(self) -> str:
        """The name of the scenario."""
        return self._native.name

    def __len__(self) -> int:
        return len(self._native)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        text = self._native.json(number) if number >= 0 else None
        if text is None:
            raise IndexError(f"there is no run {index}: there are {len(self)} runs")
        result: dict[str, Any] = json.loads(text)
        return result

    def __repr__(self) -> str:
        return f"<Runs: {len(self)} of {self.scenario!r}>"

    def _repr_html_(self) -> str:
        """A table for notebooks: the first points with the means of their runs."""
        return _html.table(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """The table for PyArrow, without a copy. Needs ``pip install 'manypath[arrow]'``."""
        table: pyarrow.Table = _extras.load("pyarrow", "arrow").table(self)
        return table

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """The table for pandas. Needs ``pip install 'manypath[pandas]'``.

        Columns of numbers without gaps are not copied, and therefore read-only: take a
        ``frame.copy()`` to write into them. ``types_mapper=pandas.ArrowDtype`` copies none.
        `options` are those of ``pyarrow.Table.to_pandas``.
        """
        _extras.load("pandas", "pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas(**{"split_blocks": True, **options})
        return frame


def run(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    *,
    seeds: Seeds | None = None,
    sweep: Mapping[str, Iterable[Value]] | None = None,
    settings: Mapping[str, Value] | None = None,
    point: int | None = None,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
    scheduler: str | Callable[[], Scheduler] | None = None,
    congestion_control: str | Callable[[], CongestionControl] | None = None,
) -> Runs:
    """Runs every point of a scenario with every seed.

    Args:
        scenario: A file, a mapping with the keys of one, or a Scenario.
        seeds: How many (30), a range ("1..60") or the seeds themselves; else the scenario's.
        sweep: Values by dotted name; all combinations run. They replace what the scenario sweeps
            under the same name.
        settings: Values by dotted name, as ``--set`` of the command.
        point: Runs one point of the sweep only, counted from 1.
        jobs: How many runs at a time; else the number of processors.
        progress: Called as ``progress(done, total)`` up to ten times a second. True shows a bar,
            False none; by default a terminal gets one. The bar is tqdm's if that is installed.
        scheduler: The name of a scheduler, or a class of your own: see manypath.policy.
        congestion_control: The same for congestion control. With policies in Python, one run at a
            time is the default of `jobs`.

    The interpreter is free meanwhile: other threads go on.

    Raises:
        ScenarioError: Something in the scenario or the arguments is wrong. Nothing was run.
        RunError: Runs gave no result; its `runs` has the results of the others.
        Exception: Whatever a policy or `progress` raised.
        Interrupted: Ctrl-C. Its `runs` has the results so far. It is a KeyboardInterrupt.
    """
    ready = Scenario(scenario)
    for name, values in (sweep or {}).items():
        ready.set(f"sweep.{name}", list(values) if not isinstance(values, str) else values)
    for name, value in (settings or {}).items():
        ready.set(name, value)
    if seeds is not None:
        ready.set("seeds", seeds)
    if isinstance(scheduler, str):
        ready.set("transport.scheduler", scheduler)
    if isinstance(congestion_control, str):
        ready.set("transport.congestion_control", congestion_control)
    job = _manypath.start(
        ready._native,
        point=point,
        jobs=jobs,
        scheduler=None if isinstance(scheduler, str) else scheduler,
        congestion_control=None if isinstance(congestion_control, str) else congestion_control,
    )
    return _result(job, progress)


def trace(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    seed: int = 1,
    *,
    point: int = 1,
    settings: Mapping[str, Value] | None = None,
) -> Iterator[_trace.Event]:
    """Makes one run and gives its events in order: see :mod:`manypath.trace`.

    The run is over before the first event; until the last one is taken, they are in a temporary
    file. Raises what :func:`run` raises.
    """
    ready = Scenario(scenario)
    for name, value in (settings or {}).items():
        ready.set(name, value)
    ready.set("seeds", [seed])
    with tempfile.TemporaryDirectory(prefix="manypath-") as folder:
        file = os.path.join(folder, "trace.jsonl")
        _result(_manypath.start(ready._native, point=point, trace=file), False)
        yield from _trace.read(file)


def _result(job: _manypath.Job, progress: Progress | bool | None) -> Runs:
    try:
        _wait.wait(job, progress)
    except KeyboardInterrupt:
        runs = Runs(job.runs())
        what = f"interrupted; {len(runs)} of {job.total} runs are over, see the exception's `runs`"
        raise Interrupted(what, runs) from None
    error = job.error()
    if error is not None:
        raise error
    native = job.runs()
    if native.failed:
        number, seed, what = native.failed[0]
        count = len(native.failed)
        more = "" if count == 1 else f"{count} runs failed, the first: "
        again = f"repeat it: point={number}, seeds=[{seed}]"
        message = f"{more}point {number}, seed {seed}: {what}\n  try: {again}"
        raise RunError(message, Runs(native))
    return Runs(native)
