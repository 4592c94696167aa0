"""The states of a path that fails, from a trace.

    python path_states.py
"""

from manypath import sim, trace

SCENARIO = {
    "name": "a path fails",
    "transport": {"preset": "cmt-pf"},
    "transfer": {"size": "8 MB"},
    "path": [
        {"rate": "10 Mbit/s", "delay": "45 ms"},
        {"rate": "10 Mbit/s", "delay": "45 ms", "down": [{"at": "2 s", "for": "2 s"}]},
    ],
}


def main() -> None:
    for event in sim.trace(SCENARIO, seed=1):
        if event.host == "a" and isinstance(event, trace.PathState):
            print(f"{event.time_s:7.3f} s  path {event.path}: {event.from_} -> {event.to}")


if __name__ == "__main__":
    main()
