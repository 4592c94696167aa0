"""A scheduler of one's own beside one that manypath has.

    python fastest_path.py
"""

from manypath import policy, sim

SCENARIO = {
    "name": "a fast and a slow path",
    "transport": {"preset": "cmt-pf", "receive_buffer": "256 KiB"},
    "transfer": {"size": "4 MB"},
    "path": [
        {"rate": "10 Mbit/s", "delay": "10 ms"},
        {"rate": "10 Mbit/s", "delay": "80 ms"},
    ],
}


class FastestFirst(policy.Scheduler):
    """Fills the path with the lowest round-trip time first."""

    def choose(self, choice: policy.Choice) -> policy.PathView | None:
        free = [path for path in choice.paths if path.usable and path.cwnd_space_bytes > 0]
        return min(free, key=lambda path: path.srtt_s or 0.0, default=None)


def main() -> None:
    for scheduler in ("fill_first", FastestFirst):
        runs = sim.run(SCENARIO, seeds=5, scheduler=scheduler)
        times = [run["transfer_time_s"] for run in runs]
        name = scheduler if isinstance(scheduler, str) else scheduler.__name__
        print(f"{name:14} {sum(times) / len(times):.3f} s")


if __name__ == "__main__":
    main()
