"""The command, whose results and errors are those of the package."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from manypath import lab

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def manypath() -> Command:
    """Runs ``manypath``: the file that the variable MANYPATH names, or the newest build."""
    target = Path(__file__).parents[2] / "target"
    built = [path for path in target.glob("*/manypath") if path.is_file()]
    newest = max(built, key=lambda path: path.stat().st_mtime, default=None)
    binary = os.environ.get("MANYPATH") or newest
    if binary is None:
        assert not os.environ.get("CI"), "CI must build the command first"
        pytest.skip("there is no manypath command: cargo build -p manypath-cli")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [str(binary), *map(str, arguments)]
        # No line is folded: what Python returns has no width.
        wide = os.environ | {"COLUMNS": "1000"}
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=wide)

    return run


EXPERIMENTS = ["cmt-fig1", "cmt-fig12", "pf-fig2"]
"""Small experiments, with figures over a parameter and over time."""


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[lab.Outcome]]:
    """A folder with the results of these experiments, and their outcomes."""
    out = tmp_path_factory.mktemp("laboratory")
    return out, lab.run(*EXPERIMENTS, out=out, quick=True, seeds=1)
