"""Results as Arrow tables and pandas frames."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from manypath import sim

from test_sim import TWO_PATHS

pyarrow = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def runs() -> sim.Runs:
    return sim.run(TWO_PATHS, seeds=5, sweep={"path.2.loss": ["0 %", "2 %"]})


def test_a_run_is_a_row(runs: sim.Runs) -> None:
    table = runs.to_arrow()
    assert table.num_rows == len(runs) == 10
    assert table.column_names[:4] == ["experiment", "variant", "path.2.loss", "seed"]
    for field, of in [("seed", "int64"), ("completed", "bool"), ("transfer_time_s", "double")]:
        assert str(table.schema.field(field).type) == of
    assert table["transfer_time_s"].to_pylist() == [run["transfer_time_s"] for run in runs]
    sent = [run["paths"][1]["packets_sent"] for run in runs]
    assert table["path2_packets_sent"].to_pylist() == sent


def test_arrow_shares_one_memory(runs: sim.Runs) -> None:
    def address(table: Any) -> Any:
        return table["transfer_time_s"].chunk(0).buffers()[1].address

    table = runs.to_arrow()
    assert address(runs.to_arrow()) == address(table)
    frame = runs.to_pandas()
    array = frame["transfer_time_s"].to_numpy(copy=False)
    assert array.__array_interface__["data"][0] == address(table)


def test_frames_group_by_parameters(runs: sim.Runs) -> None:
    means = runs.to_pandas().groupby("path.2.loss")["transfer_time_s"].mean()
    assert list(means.index) == ["0 %", "2 %"]
    assert means["0 %"] < means["2 %"]


def test_a_missing_package_is_named(runs: sim.Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"pyarrow is not installed\n  try: pip install"):
        runs.to_arrow()


def test_a_table_outlives_its_runs() -> None:
    table = sim.run(TWO_PATHS).to_arrow()
    assert table["completed"].to_pylist() == [True]
