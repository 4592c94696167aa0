"""The laboratory: experiments of papers, their results and figures.

    >>> from manypath import lab
    >>> lab.run("cmt-fig12", quick=True)
    >>> lab.results("lab-results", "cmt-fig12").to_pandas()
    >>> lab.figure("cmt-fig12a").savefig("cmt-fig12a.svg")

Files, claims and statistics are those of ``manypath lab``: see docs/laboratory.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _extras, _figures, _manypath, _spread, _wait
from ._errors import LabError
from ._wait import Progress
from .sim import Seeds

if TYPE_CHECKING:
    import distributed
    import matplotlib.figure
    import pandas
    import pyarrow

__all__ = ["Experiment", "Outcome", "Results", "experiments", "figure", "results", "run"]

StrPath = str | os.PathLike[str]

OUT = "lab-results"
"""The folder of results, unless another is named."""


@dataclass(frozen=True)
class Experiment:
    """An experiment: a figure or table of a paper."""

    id: str
    """Its identifier, such as ``cmt-fig12``."""

    title: str
    """One line: what it shows."""

    paper: str
    """Its paper, such as ``002-cmt``."""

    figure: str
    """The paper's figure or table, such as "Fig. 12"."""

    figures: list[str]
    """Other identifiers: one for each figure that it draws."""

    says: str
    """The paper's statement; may be empty."""

    claims: int
    """How many claims are checked."""

    runs_of: str | None
    """The experiment whose runs it uses, if it has none of its own."""

    folder: str | None
    """Its folder; None if it is one of those in the package."""

    figures_toml: str
    """The text of its ``figures.toml``."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one experiment: an object of ``manypath lab run --json``."""

    about: dict[str, Any]
    """What ran: ``id``, ``title``, ``runs``, ``planned``, ``quick`` and more."""

    judgements: list[dict[str, Any]]
    """The claims with their verdicts."""

    agreements: list[dict[str, Any]]
    """How the means compare with those of the papers' simulator."""

    not_compared: int
    """Means of the papers' simulator without runs of ours."""

    failed: list[dict[str, Any]]
    """Runs without a result: ``point``, ``seed``, ``error``, ``command``."""


class Results:
    """The files of one experiment."""

    def __init__(self, folder: Path) -> None:
        """Use :func:`results`."""
        self.folder = folder
        """The folder with the files."""

        try:
            about = (folder / "experiment.json").read_text(encoding="utf-8")
        except OSError as error:
            what = f"there are no results: {error.strerror or error}"
            remedy = f"run it first: manypath.lab.run({folder.name!r}, out={str(folder.parent)!r})"
            raise LabError(str(folder), None, what, remedy) from None
        self.about: dict[str, Any] = json.loads(about)
        """What ran: ``title``, ``paper``, ``quick``, ``seeds``, ``runs``, ``parameters`` and more."""

    def __repr__(self) -> str:
        return f"<Results of {self.about['id']}: {self.about['runs']} runs>"

    def to_arrow(self) -> pyarrow.Table:
        """A row for each run. Needs ``pip install 'manypath[arrow]'``."""
        parquet = _extras.load("pyarrow.parquet", "arrow")
        table: pyarrow.Table = parquet.read_table(self.folder / "runs.parquet")
        return table

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """A row for each run; `options` are those of ``pyarrow.Table.to_pandas``.

        Columns: ``experiment``, ``variant``, the swept parameters (texts), ``seed``, the fields of
        the result and derived columns.
        """
        _extras.load("pandas", "pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas(**{"split_blocks": True, **options})
        return frame

    def summary(self) -> pandas.DataFrame:
        """A row for each variant, point and field: ``mean``, ``std``, ``n``, ``ci95`` and more.

        ``ci95`` is half the width of the 95 % confidence interval of the mean, in the field's unit.
        """
        return self._csv("summary.csv", text=["variant", "field", *self.about["parameters"]])

    def samples(self) -> pandas.DataFrame:
        """Time series: ``variant``, parameters, ``seed``, ``time_s``, ``series``, ``value``."""
        return self._csv("samples.csv", text=["variant", "series", *self.about["parameters"]])

    def claims(self) -> pandas.DataFrame:
        """A row for each claim: what the paper says, what was measured, the verdict."""
        claims = json.loads((self.folder / "claims.json").read_text(encoding="utf-8"))
        frame: pandas.DataFrame = _extras.load("pandas", "pandas").DataFrame(claims)
        return frame

    def _csv(self, name: str, text: list[str]) -> pandas.DataFrame:
        read_csv = _extras.load("pandas", "pandas").read_csv
        try:
            # Values such as "none" are texts of the scenario, not gaps.
            options: Any = {"dtype": dict.fromkeys(text, str), "keep_default_na": False}
            frame: pandas.DataFrame = read_csv(self.folder / name, na_values=[""], **options)
        except OSError:
            what = f"the experiment has no {name}"
            raise LabError(str(self.folder), None, what, "see docs/laboratory.md") from None
        return frame


def experiments(*names: str, folder: StrPath | None = None) -> list[Experiment]:
    """The experiments that names select: all without a name.

    A name is an identifier, one of its figures, a paper (``002``), or a pattern (``rtx-*``). They
    are read from `folder`, else from the nearest folder ``experiments`` in the working directory or
    above it, else from the copy in the package. Raises LabError for a name that selects nothing.
    """
    found = _manypath.Lab(folder).select(names or ("all",))
    return [Experiment(**json.loads(text)) for text in found]


def run(
    *names: str,
    out: StrPath = OUT,
    quick: bool = False,
    seeds: Seeds | None = None,
    jobs: int | None = None,
    folder: StrPath | None = None,
    client: distributed.Client | str | None = None,
    progress: Progress | bool | None = None,
) -> list[Outcome]:
    """Runs experiments, writes their files and judges their claims.

    Args:
        names: Which experiments, as in :func:`experiments`; at least one.
        out: The folder of the results. Each experiment gets a folder in it with the files that
            ``manypath lab run`` writes, byte for byte.
        quick: Five seeds, and long sweeps thinned.
        seeds: How many, a range ("1..60") or the seeds themselves; else those of the scenarios.
        jobs: How many runs at a time; else the number of processors. Files do not depend on it.
        folder: The folder of the experiments, as in :func:`experiments`.
        client: A Dask client, or the address of a scheduler (``dask://HOST:PORT``): its workers
            make the runs, and `jobs` does not count. Experiments in real time are left out. What
            was made is kept in ``out/tasks``, so that the same call after a failure makes only
            what is missing. Needs ``pip install 'manypath[dask]'`` here and at each worker.
        progress: As in :func:`manypath.sim.run`.

    Ctrl-C waits for the runs under way, and keeps and judges those that are over.

    Raises:
        LabError: A name or a file is wrong, or results cannot be written.
        SpreadError: The cluster is lost, or has no worker with this version.
    """
    if not names:
        raise TypeError("name an experiment, such as manypath.lab.run('cmt-fig12')")
    lab = _manypath.Lab(folder)
    own = None if seeds is None else _seeds(seeds)
    if client is None:
        job = _manypath.start_lab(lab, names, out, jobs=jobs, quick=quick, seeds=own)
        _wait.wait(job, progress)
        error = job.error()
        if error is not None:
            raise error
        texts = job.outcomes()
    else:
        texts = _on_cluster(client, lab, names, out, quick, own, progress)
    outcomes = [Outcome(**json.loads(text)) for text in texts]
    failed = [run for outcome in outcomes for run in outcome.failed]
    if failed:
        what = f"{len(failed)} runs failed, the first: {failed[0]['error']}"
        warnings.warn(f"{what}; repeat it: {failed[0]['command']}", stacklevel=2)
    return outcomes


def _on_cluster(
    client: distributed.Client | str,
    lab: _manypath.Lab,
    names: tuple[str, ...],
    out: StrPath,
    quick: bool,
    seeds: list[int] | None,
    progress: Progress | bool | None,
) -> list[str]:
    work = _manypath.Work(lab, names, quick=quick, seeds=seeds)
    plan = _spread.Plan.of(work, names, quick=quick, seeds=seeds)
    own = _spread.connect(client) if isinstance(client, str) else contextlib.nullcontext(client)
    show, close = _wait.shower(progress, _spread.runs_of(work))
    try:
        with own as connected:
            kept = _spread.run(connected, work, plan, out, tell=warnings.warn, progress=show)
    finally:
        close()
    return work.collect(kept, out)


def results(out: StrPath, id: str) -> Results:
    """The results of experiment `id` in the folder `out`.

    Raises LabError if there are none.
    """
    return Results(Path(out) / id)


def figure(
    id: str,
    *,
    out: StrPath = OUT,
    variant: str = "scenario",
    folder: StrPath | None = None,
) -> matplotlib.figure.Figure:
    """Draws a figure of an experiment from its results, as its ``figures.toml`` says.

    Args:
        id: A figure (``cmt-fig12a``), or an experiment, of which it takes the first figure.
        out: The folder of the results.
        variant: Which scenario of the experiment: ``scenario`` follows the paper.
        folder: The folder of the experiments, as in :func:`experiments`.

    Means are drawn with their 95 % confidence intervals. The figure does not belong to pyplot; a
    notebook shows it, and ``savefig`` writes it. Needs ``pip install 'manypath[figures]'``.

    Raises LabError if there are no results, or no such figure.
    """
    [found, *_] = experiments(id, folder=folder)
    spec = _figures.find(found, id)
    return _figures.draw(spec, found, results(out, found.runs_of or found.id), variant)


def _seeds(seeds: Seeds) -> list[int]:
    """Seeds as a list, read by the rules of scenarios."""
    network = {"transfer": {"size": "1 B"}, "path": [{"rate": "1 Mbit/s", "delay": "1 ms"}]}
    scenario = _manypath.Scenario.from_dict(network)
    scenario.set("seeds", seeds if isinstance(seeds, int | str) else list(seeds))
    return scenario.seeds
