"""Traces as typed events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from manypath import ScenarioError, sim, trace

from test_sim import TWO_PATHS

FAILING = {
    **TWO_PATHS,
    "transfer": {"size": "4 MB"},
    "path": [TWO_PATHS["path"][0], {**TWO_PATHS["path"][1], "down": [{"at": "1 s"}]}],  # type: ignore[index]
}


def test_a_run_tells_what_happened() -> None:
    events = list(sim.trace(FAILING, seed=3))
    assert isinstance(events[0], trace.Run)
    assert (events[0].seed, events[0].preset) == (3, "cmt-pf")
    assert {event.host for event in events} == {"a", "z"}
    failed = [e for e in events if isinstance(e, trace.PathState) and e.to == "potentially_failed"]
    assert failed[0].path == 2 and failed[0].from_ == "active" and failed[0].time_s > 1


def test_chunks_have_their_fields() -> None:
    data = sacks = 0
    for event in sim.trace(TWO_PATHS):
        if isinstance(event, trace.PacketReceived):
            for chunk in event.chunks:
                if isinstance(chunk, trace.DataChunk):
                    data += chunk.bytes
                sacks += isinstance(chunk, trace.SackChunk) and chunk.a_rwnd > 0
    assert data >= 400_000 and sacks > 20


def test_the_result_is_that_of_the_run_without_a_trace() -> None:
    lossy = {"path.2.loss": "5 %"}
    [run] = sim.run(TWO_PATHS, seeds=[7], settings=lossy)
    events = sim.trace(TWO_PATHS, seed=7, settings=lossy)
    dropped = sum(isinstance(event, trace.PacketDropped) for event in events)
    assert dropped >= sum(path["packets_dropped"] for path in run["paths"]) > 0


def test_events_of_later_versions_are_kept() -> None:
    lines = [
        '{"time_s": 1.5, "host": "a", "event": "flown", "height_m": 3}',
        "",
        '{"time_s": 2, "host": "a", "event": "t3_expired", "path": 1, "why": "new field"}',
    ]
    other, known = trace.read_lines(lines)
    assert isinstance(other, trace.OtherEvent) and other.fields == {"height_m": 3}
    assert isinstance(known, trace.T3Expired) and known.path == 1


@pytest.mark.parametrize(
    "line",
    [
        "not JSON",
        "[]",
        "3",
        '{"time_s": 1}',
        '{"event": "t3_expired", "time_s": 1, "host": "a"}',
        '{"event": ["t3_expired"], "time_s": 1, "host": "a", "path": 1}',
        '{"event": "packet_sent", "time_s": 1, "host": "a", "chunks": [3]}',
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "trace.jsonl"
    good = '{"time_s": 1, "host": "a", "event": "restarted"}'
    path.write_text(f"{good}\n{line}\n")
    events = trace.read(path)
    next(events)
    with pytest.raises(trace.TraceError) as raised:
        next(events)
    assert (raised.value.place, raised.value.line) == (str(path), 2)
    assert "try: " in str(raised.value)


def test_wrong_scenarios_are_errors_of_the_first_event() -> None:
    with pytest.raises(ScenarioError):
        next(sim.trace({"path": 3}))
    with pytest.raises(FileNotFoundError):
        next(trace.read("nowhere.jsonl"))


def test_classes_are_those_of_the_schema() -> None:
    import subprocess
    import sys

    tool = Path(__file__).parents[1] / "tools" / "make_events.py"
    subprocess.run([sys.executable, tool, "--check"], check=True)
    assert json.loads((tool.parents[2] / "docs" / "trace.schema.json").read_text())["oneOf"]
