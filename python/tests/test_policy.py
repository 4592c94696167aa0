"""Policies in Python."""

from __future__ import annotations

import time
from typing import Any

import pytest

from manypath import policy, sim

from same_policies import FillFirst, Rfc9260

SCENARIO = {
    "transport": {"preset": "cmt-pf"},
    "transfer": {"size": "2 MB"},
    "path": [{"rate": "10 Mbit/s", "delay": "20 ms", "loss": "0.2 %"}] * 2,
}


def test_the_same_policy_in_python_gives_the_same_runs() -> None:
    def hashes(scheduler: Any, control: Any) -> list[str]:
        runs = sim.run(SCENARIO, seeds=5, scheduler=scheduler, congestion_control=control)
        return [run["trace_hash"] for run in runs]

    assert hashes(FillFirst, Rfc9260) == hashes("fill_first", "rfc9260")


class SecondOnly(policy.Scheduler):
    """Sends everything on the second path."""

    def choose(self, choice: policy.Choice) -> policy.PathView | None:
        path = choice.paths[-1]
        return path if path.usable and path.cwnd_space_bytes > 0 else None


def shares(runs: sim.Runs) -> list[float]:
    paths = [path["data_chunks_sent"] for path in runs[0]["paths"]]
    return [chunks / sum(paths) for chunks in paths]


def test_the_engine_does_what_a_scheduler_says() -> None:
    both = shares(sim.run(SCENARIO))
    second = shares(sim.run(SCENARIO, scheduler=SecondOnly))
    assert both[0] > 0.3 and second[1] > 0.95


def test_random_choices_repeat() -> None:
    class Random(policy.Scheduler):
        def choose(self, choice: policy.Choice) -> policy.PathView | None:
            free = [path for path in choice.paths if path.usable and path.cwnd_space_bytes > 0]
            assert choice.primary.number == 1 and choice.now_s > 0 and choice.waiting_bytes > 0
            draws = [choice.random(), choice.random()]
            assert all(0 <= draw < 1 for draw in draws) and draws[0] != draws[1]
            return free[int(draws[0] * len(free))] if free else None

    def hashes() -> list[str]:
        return [run["trace_hash"] for run in sim.run(SCENARIO, seeds=3, scheduler=Random, jobs=2)]

    first = hashes()
    assert first == hashes() and len(set(first)) == 3


def test_a_congestion_control_moves_the_window() -> None:
    class Still(Rfc9260):
        wants_rtt = True
        wants_paths = True
        seen: list[policy.AckFacts] = []

        def on_ack(
            self, window: policy.Window, limits: policy.Limits, ack: policy.AckFacts
        ) -> policy.Window:
            self.seen.append(ack)
            return policy.Window(4 * limits.packet_bytes, window.ssthresh_bytes)

    fast, slow = sim.run(SCENARIO)[0], sim.run(SCENARIO, congestion_control=Still)[0]
    assert slow["transfer_time_s"] > 1.5 * fast["transfer_time_s"]
    assert {ack.path for ack in Still.seen} == {1, 2}
    assert {len(ack.paths) for ack in Still.seen} <= {1, 2}
    rtts = [ack.rtt_s for ack in Still.seen if ack.rtt_s]
    assert rtts and min(rtts) >= 0.04


def test_each_path_has_its_own_control_and_each_association_its_scheduler() -> None:
    made: list[str] = []

    def scheduler() -> policy.Scheduler:
        made.append("scheduler")
        return FillFirst()

    def control() -> policy.CongestionControl:
        made.append("control")
        return Rfc9260()

    sim.run(SCENARIO, scheduler=scheduler, congestion_control=control)
    assert made.count("scheduler") >= 1 and made.count("control") >= 2


def test_names_choose_policies_that_manypath_has() -> None:
    runs = sim.run(SCENARIO, scheduler="primary", congestion_control="cubic")
    assert shares(runs)[0] > 0.9


class Wrong(policy.Scheduler):
    """Fails after some choices, in a way of each test's."""

    asked = 0

    def choose(self, choice: policy.Choice) -> policy.PathView | None:
        self.asked += 1
        if self.asked < 50:
            return FillFirst().choose(choice)
        return self.fail(choice)

    def fail(self, choice: policy.Choice) -> policy.PathView | None:
        raise LookupError("no idea")


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_a_policy_is_the_error_of_the_call(jobs: int) -> None:
    with pytest.raises(LookupError, match="no idea"):
        sim.run(SCENARIO, seeds=20, scheduler=Wrong, jobs=jobs)


def test_wrong_answers_are_errors_that_say_what_to_return() -> None:
    class Number(Wrong):
        def fail(self, choice: policy.Choice) -> policy.PathView | None:
            return 1  # type: ignore[return-value]

    class Full(Wrong):
        def fail(self, choice: policy.Choice) -> policy.PathView | None:
            full = (path for path in choice.paths if path.cwnd_space_bytes == 0)
            return next(full, None) or FillFirst().choose(choice)

    class Zero(Rfc9260):
        def on_fast_retransmit(self, window: policy.Window, limits: policy.Limits) -> policy.Window:
            return policy.Window(0, 0)

    with pytest.raises(TypeError, match=r"choose returned int; return one of choice\.paths"):
        sim.run(SCENARIO, scheduler=Number)
    with pytest.raises(ValueError, match="cannot carry data now"):
        sim.run(SCENARIO, scheduler=Full)
    with pytest.raises(ValueError, match=r"on_fast_retransmit returned cwnd_bytes=0.*packet_bytes"):
        sim.run(SCENARIO, congestion_control=Zero)


def test_what_is_no_class_is_an_error() -> None:
    with pytest.raises(TypeError, match="a policy is a class"):
        sim.run(SCENARIO, scheduler=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="abstract"):
        sim.run(SCENARIO, scheduler=policy.Scheduler)
    with pytest.raises(AttributeError, match="choose"):
        sim.run(SCENARIO, scheduler=object)  # type: ignore[arg-type]


def test_a_scheduler_that_always_waits_ends_at_the_time_limit() -> None:
    class Lazy(policy.Scheduler):
        def choose(self, choice: policy.Choice) -> policy.PathView | None:
            return None

    began = time.monotonic()
    [run] = sim.run(SCENARIO | {"time_limit": "10 s"}, scheduler=Lazy)
    assert not run["completed"] and time.monotonic() - began < 10
