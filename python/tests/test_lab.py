"""Experiments, their results and figures."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from manypath import LabError, lab

from conftest import EXPERIMENTS

pandas = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")


@pytest.fixture
def out(laboratory: tuple[Path, list[lab.Outcome]]) -> Path:
    return laboratory[0]


def test_experiments_are_found_by_name() -> None:
    everything = {experiment.id for experiment in lab.experiments()}
    assert {"cmt-fig12", "pf-fig2", "mtcp-fig11"} <= everything
    assert {experiment.paper for experiment in lab.experiments("002")} == {"002-cmt"}
    [one] = lab.experiments("cmt-fig12a")
    assert one.id == "cmt-fig12" and one.claims > 0 and "Fig. 12" in one.figure


def test_results_are_frames(out: Path) -> None:
    results = lab.results(out, "cmt-fig12")
    runs = results.to_pandas()
    assert len(runs) == results.about["runs"] > 20
    by = ["variant", *results.about["parameters"]]
    means = runs[runs["completed"]].groupby(by)["ack_time_s"].mean()
    summary = results.summary()
    of_summary = summary[summary["field"] == "ack_time_s"].set_index(by)["mean"]
    difference = (means - of_summary).abs()
    assert len(difference) == len(of_summary) and difference.max() < 1e-9
    assert set(results.claims()["verdict"]) <= {"holds", "undecided", "fails", "explained", "not-run"}


def test_figures_show_each_line_with_its_points(out: Path) -> None:
    figure = lab.figure("cmt-fig12a", out=out)
    [axes] = figure.axes
    labels = axes.get_legend_handles_labels()[1]
    assert {"RTX-SAME", "RTX-CWND", "RTX-LOSSRATE"} <= set(labels)
    assert axes.get_xlabel() == "Loss rate of path 2 (%)" and axes.get_ylabel().endswith("(s)")
    places = [float(x) for x in axes.lines[0].get_xdata()]  # type: ignore[union-attr, arg-type]
    assert places == sorted(places) and places[-1] == 10
    image = io.BytesIO()
    figure.savefig(image, format="png")
    assert image.getvalue().startswith(b"\x89PNG")


def test_every_figure_of_these_results_can_be_drawn(out: Path) -> None:
    for experiment in lab.experiments(*EXPERIMENTS):
        for name in [experiment.id, *experiment.figures]:
            if name in experiment.figures_toml:
                assert lab.figure(name, out=out).axes


def test_missing_results_say_how_to_make_them(out: Path) -> None:
    with pytest.raises(LabError, match=r"there are no results.*\n.*manypath\.lab\.run"):
        lab.figure("pf-fig4", out=out)
    with pytest.raises(LabError, match="no runs of the variant `packed`"):
        lab.figure("cmt-fig12a", out=out, variant="packed")


def test_names_are_checked_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="the nearest is `cmt-fig1`"):
        lab.experiments("cmt-fig11")
    with pytest.raises(TypeError):
        lab.run(out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_run_keeps_what_is_over(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab.run("cmt-fig12", out=tmp_path, progress=stop)
    about = lab.results(tmp_path, "cmt-fig12").about
    assert 0 < about["runs"] < about["planned"]
    assert len(lab.results(tmp_path, "cmt-fig12").to_pandas()) == about["runs"]
