"""Runs, their results, and errors."""

from __future__ import annotations

import _thread
import sys
import threading
import time
from pathlib import Path

import pytest

from manypath import Interrupted, RunError, ScenarioError, _manypath, sim

TWO_PATHS = {
    "name": "two paths",
    "transport": {"preset": "cmt-pf"},
    "transfer": {"size": "400 kB"},
    "path": [
        {"rate": "10 Mbit/s", "delay": "20 ms"},
        {"rate": "5 Mbit/s", "delay": "40 ms", "loss": "1 %"},
    ],
}

LONG = TWO_PATHS | {"transfer": {"size": "1 GB"}, "time_limit": "100000 s"}
"""One run takes many seconds."""


def write(folder: Path, text: str) -> Path:
    path = folder / "scenario.toml"
    path.write_text(text)
    return path


def test_a_dict_is_a_scenario() -> None:
    runs = sim.run(TWO_PATHS, seeds=3)
    assert [run["seed"] for run in runs] == [1, 2, 3]
    assert all(run["completed"] and run["bytes"] == 400_000 for run in runs)
    assert runs.scenario == runs[0]["scenario"] == "two paths"
    assert len(runs[-1]["paths"]) == 2


def test_a_scenario_that_names_no_preset_runs_the_default_of_the_command() -> None:
    plain = {key: value for key, value in TWO_PATHS.items() if key != "transport"}
    named = plain | {"transport": {"profile": "fast", "preset": "adaptive"}}
    assert list(sim.run(plain)) == list(sim.run(named))
    assert sim.run(plain)[0]["preset"] == "adaptive"


def test_every_point_runs_with_every_seed_in_order() -> None:
    sweep = {"path.2.loss": ["0 %", "2 %"], "transport.preset": ["cmt", "cmt-pf"]}
    runs = sim.run(TWO_PATHS, seeds=[5, 9], sweep=sweep, jobs=2)
    seen = [(*run["parameters"].values(), run["seed"]) for run in runs]
    losses, presets = sweep.values()
    assert seen == [(loss, preset, seed) for loss in losses for preset in presets for seed in (5, 9)]
    one = sim.run(TWO_PATHS, seeds="9..9", sweep=sweep, point=3)
    assert one[0] == runs[5]


def test_numbers_of_other_libraries_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    paths = [{**path, "mtu": numpy.int64(1400)} for path in TWO_PATHS["path"]]  # type: ignore[dict-item]
    scenario = {**TWO_PATHS, "path": paths, "time_limit": numpy.float64(100.5)}
    with pytest.raises(ScenarioError, match="time_limit"):
        sim.Scenario(scenario).points()  # a time needs a unit, and the error names the key
    runs = sim.run(scenario | {"time_limit": "100 s"}, seeds=numpy.arange(1, 4))
    assert [run["seed"] for run in runs] == [1, 2, 3]


@pytest.mark.parametrize(
    "change, place, words",
    [
        ({"tranfer": {}}, "scenario['tranfer']", "did you mean `transfer`?"),
        ({"path": [{"rate": "fast"}]}, "scenario['path'][0]['rate']", "10 Mbit/s"),
        ({"transport": {"preset": "cmt-fp"}}, "scenario['transport']['preset']", "`cmt-pf`"),
        ({"time_limit": None}, "scenario['time_limit']", "leave the key out"),
        ({"name": b"bytes"}, "scenario['name']", "write a text"),
        ({"transfer": {"size": object()}}, "scenario['transfer']['size']", "type object"),
    ],
)
def test_an_error_in_a_dict_names_its_place(change: dict[str, object], place: str, words: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        sim.run(TWO_PATHS | change)
    error = raised.value
    assert (error.place, error.line) == (place, None), str(error)
    assert words in str(error)


def test_a_list_that_contains_itself_is_an_error() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ScenarioError, match="within one another"):
        sim.run(TWO_PATHS | {"name": endless})


def test_errors_of_arguments_name_the_argument() -> None:
    for arguments, place in [
        ({"seeds": "many"}, "seeds"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"sweep": {"path.2.loss": []}}, "sweep['path.2.loss']"),
        ({"settings": {"path.3.loss": "1 %"}}, "settings['path.3.loss']"),
    ]:
        with pytest.raises(ScenarioError) as raised:
            sim.run(TWO_PATHS, **arguments)  # type: ignore[arg-type]
        assert raised.value.place == place
    with pytest.raises(IndexError, match="points are 1 to 1"):
        sim.run(TWO_PATHS, point=2)


def test_a_file_is_missing() -> None:
    with pytest.raises(ScenarioError, match="nowhere.toml: cannot be read"):
        sim.run("nowhere.toml")


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    sim.run(TWO_PATHS, seeds=20, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (20, 20)
    assert told == sorted(told)


def test_a_terminal_gets_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # it cannot be imported
    sim.run(TWO_PATHS, seeds=4, progress=True)
    shown = capsys.readouterr().err
    assert "4/4 runs" in shown and shown.endswith("\r\x1b[K")
    sim.run(TWO_PATHS, seeds=4)
    assert capsys.readouterr().err == "", "no terminal, no line"


def test_runs_without_a_result_are_named_and_the_others_kept() -> None:
    scenario = sim.Scenario(TWO_PATHS)
    job = _manypath.start(scenario._native, trace="/nowhere/trace.jsonl")
    with pytest.raises(RunError, match=r"point 1, seed 1: .*/nowhere/trace.jsonl.*\n  try: repeat it") as raised:
        sim._result(job, False)
    assert len(raised.value.runs) == 0


def test_an_error_of_the_callback_ends_the_runs() -> None:
    def fail(done: int, total: int) -> None:
        raise ZeroDivisionError

    began = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        sim.run(LONG, progress=fail)
    assert time.monotonic() - began < 5


def test_ctrl_c_ends_runs_at_once_and_keeps_finished_ones() -> None:
    def interrupt(done: int, total: int) -> None:
        if done == 2:
            threading.Timer(0.2, _thread.interrupt_main).start()

    began = time.monotonic()
    sweep = {"transfer.size": ["100 kB", "200 kB", "1 GB"]}
    with pytest.raises(KeyboardInterrupt) as raised:
        sim.run(LONG, sweep=sweep, progress=interrupt)
    assert time.monotonic() - began < 5
    assert isinstance(raised.value, Interrupted)
    assert [run["bytes"] for run in raised.value.runs] == [100_000, 200_000]


def test_a_notebook_shows_runs_as_a_table() -> None:
    sweep = {"path.2.loss": ["0 %", "2 %"], "transport.preset": ["cmt", "cmt-pf"]}
    runs = sim.run(TWO_PATHS | {"name": "<b>two</b>"}, seeds=3, sweep=sweep)
    text = runs._repr_html_()
    assert text.count("<tr>") == 1 + 4, text
    for part in ("<th>path.2.loss</th>", "<th>time [s]</th>", "<td>2 %</td>", "<td>3</td>", "±", "12 runs of"):
        assert part in text, (part, text)
    assert "<b>" not in text and "&lt;b&gt;two" in text
    first = [run["transfer_time_s"] for run in runs[:3]]
    assert f"<td>{sum(first) / 3:.4g} ± " in text, text
    one = sim.run(TWO_PATHS, seeds=1)._repr_html_()
    assert one.count("<tr>") == 2 and f"<td>{sim.run(TWO_PATHS, seeds=1)[0]['transfer_time_s']:.4g}</td>" in one


def test_the_table_of_many_runs_is_bounded() -> None:
    losses = [f"{loss} %" for loss in range(30)]
    small = TWO_PATHS | {"transfer": {"size": "1 kB"}}
    text = sim.run(small, seeds=2, sweep={"path.2.loss": losses})._repr_html_()
    assert text.count("<tr>") == 1 + 20 and len(text) < 10_000, text
    assert "60 runs of" in text and "The first 40 of them are shown." in text
    empty = sim.run(small | {"time_limit": "1 ms"}, seeds=2)._repr_html_()
    assert "2 incomplete" in empty and "<td>-</td>" in empty
