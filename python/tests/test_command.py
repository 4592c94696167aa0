"""The package and the command give the same results, files and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from manypath import LabError, ScenarioError, lab, sim

from conftest import EXPERIMENTS, Command

SCENARIOS = Path(__file__).parents[2] / "examples" / "scenarios"


@pytest.mark.parametrize("name", ["two-paths", "failure", "dumbbell"])
def test_runs_are_those_of_the_command(manypath: Command, name: str) -> None:
    path = SCENARIOS / f"{name}.toml"
    lines = manypath("sim", "run", path, "--seeds", "2", "--json").stdout.splitlines()
    assert list(sim.run(path, seeds=2)) == [json.loads(line) for line in lines]


def test_tables_are_those_of_the_command(manypath: Command, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path, file = SCENARIOS / "failure.toml", tmp_path / "runs.parquet"
    manypath("sim", "run", path, "--seeds", "2", "--parquet", file)
    assert sim.run(path, seeds=2).to_arrow().equals(parquet.read_table(file))


WRONG = [
    'transfer = { size = "1 MB" }\n[[path]]\nrate = "10 Mbit/s"\ndelay = "20 sec"\n',
    '[transfer]\nsize = "1 MB"\n[[path]]\nrate = "10 Mbit/s"\nloss = "120 %"\n',
    '[transfer]\nsize = "1 MB"\n[[paths]]\nrate = "10 Mbit/s"\n',
    '[transfer]\nsize = "1 MB"\n[[path]]\nrate = "10 Mbit/s"\ndelay = "1 ms"\n[sweep]\n"path.3.loss" = ["1 %"]\n',
    "[transfer\n",
    "",
]


@pytest.mark.parametrize("text", WRONG)
def test_errors_are_those_of_the_command(manypath: Command, tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    said = manypath("sim", "run", path)
    assert said.returncode == 2
    with pytest.raises(ScenarioError) as raised:
        sim.run(path)
    error = raised.value
    assert str(error) in said.stderr
    assert error.place == str(path) and error.remedy in said.stderr
    assert error.line is not None and f"wrong.toml:{error.line}: {error.what}" in said.stderr


def test_the_explanation_is_that_of_the_command(manypath: Command) -> None:
    path = SCENARIOS / "failure.toml"
    assert sim.Scenario(path).explain(2) == manypath("sim", "check", path, "--point", "2").stdout


def test_files_of_the_laboratory_are_those_of_the_command(
    manypath: Command, laboratory: tuple[Path, list[lab.Outcome]], tmp_path: Path
) -> None:
    ours, outcomes = laboratory
    done = manypath("lab", "run", *EXPERIMENTS, "--quick", "--seeds", "1", "--json", "--out", tmp_path)
    lines = done.stdout.splitlines()
    assert [vars(outcome) for outcome in outcomes] == [json.loads(line) for line in lines]
    files = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert len(files) > 20
    assert files == sorted(path.relative_to(ours) for path in ours.rglob("*") if path.is_file())
    for file in files:
        assert (ours / file).read_bytes() == (tmp_path / file).read_bytes(), file


def test_the_laboratory_names_what_is_wrong(manypath: Command, tmp_path: Path) -> None:
    said = manypath("lab", "run", "cmt-fig99", "--out", tmp_path)
    with pytest.raises(LabError) as raised:
        lab.run("cmt-fig99", out=tmp_path)
    assert raised.value.remedy in said.stderr and raised.value.what in said.stderr
