"""The networks of the comparison: scenario files, their links' sum over time, and ones drawn at
random.
"""
import fnmatch
import random
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "networks"
UNITS = {"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "ms": 1e-3, "s": 1}


class NetworkError(Exception):
    """A file is no network of the comparison; the message says why."""


def quantity(text):
    """A rate in bit/s or a time in seconds."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(\S+)\s*", str(text))
    if not found or found[2] not in UNITS:
        raise NetworkError(f"{text!r} is not a rate or a time with one of the units {', '.join(UNITS)}")
    return float(found[1]) * UNITS[found[2]]


@dataclass
class Path_:
    """The forward direction of a path: its rate from each instant on, in order, and its outages."""
    rates: list
    outages: list
    pauses: tuple = ()
    # One way.
    delay_s: float = 0.0

    def paused(self, seconds):
        """Beginnings and ends of the pauses until an instant."""
        if self.pauses:
            at, length, every = self.pauses
            while at < seconds:
                yield at, min(at + length, seconds)
                at += every

    def bits(self, seconds):
        """Bits that the path carries from its start to an instant; none during outages and pauses.
        """
        still = self.outages + list(self.paused(seconds))
        marks = {0.0, seconds} | {at for at, _ in self.rates} | {at for outage in still for at in outage}
        marks = sorted(at for at in marks if at <= seconds)
        total = 0.0
        for begin, end in zip(marks, marks[1:]):
            if not any(down <= begin < up for down, up in still):
                total += [rate for at, rate in self.rates if at <= begin][-1] * (end - begin)
        return total


@dataclass
class Network:
    file: Path
    name: str
    description: str
    paths: list

    def offered_bps(self, seconds):
        """The mean rate of all links together over the first seconds, in bit/s."""
        return sum(path.bits(seconds) for path in self.paths) / seconds if seconds > 0 else 0.0


def path_of(table):
    if "hops" in table:
        raise NetworkError("its paths have hops; the comparison takes paths of one hop")
    rate = table.get("rate")
    rates = [(0.0, quantity(rate["forward"] if isinstance(rate, dict) else rate))]
    changes = [(quantity(change["at"]), quantity(change["to"])) for change in table.get("rate_changes", ())]
    outages = []
    for outage in table.get("down", ()):
        at = quantity(outage["at"])
        outages.append((at, at + quantity(outage["for"]) if "for" in outage else float("inf")))
    pauses = ()
    if "pauses" in table:
        held = table["pauses"].get("forward", table["pauses"])
        every = quantity(held["every"])
        pauses = (quantity(held.get("first", held["every"])), quantity(held["length"]), every)
        if every <= 0:
            raise NetworkError("its pauses have no period")
    delay = table.get("delay")
    delay_s = quantity(delay["forward"] if isinstance(delay, dict) else delay)
    return Path_(rates + sorted(changes), outages, pauses, delay_s)


def load(file):
    file = Path(file)
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        paths = [path_of(path) for path in table["path"]]
    except (OSError, UnicodeError, tomllib.TOMLDecodeError, NetworkError) as why:
        raise NetworkError(f"{file}: {why}") from None
    except (KeyError, TypeError, AttributeError) as why:
        raise NetworkError(f"{file}: not a scenario in the short form, or a value is missing: {why}") from None
    return Network(file, str(table.get("name", file.stem)), str(table.get("description", "")), paths)


def title(file):
    """The name and the description of a scenario in the long form."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        return table["name"], table["description"]
    except (OSError, UnicodeError, tomllib.TOMLDecodeError, KeyError) as why:
        raise NetworkError(f"{file}: {why}") from None


def is_wanted(name, patterns):
    """True if a pattern fits a name. Without patterns all names are wanted."""
    return not patterns or any(fnmatch.fnmatch(name, f"*{pattern}*") for pattern in patterns)


def chosen(files, patterns, more=()):
    """These files, or all of the table, as far as a pattern fits their names; and more."""
    files = [Path(file) for file in files] or sorted(FOLDER.glob("*.toml"))
    return [load(file) for file in files if is_wanted(file.stem, patterns)] + list(more)


def draw(count, seed, directory):
    """Networks of two paths without loss, drawn at random: 5 to 100 Mbit/s, 2 to 100 ms, queues of
    1 or 2 bdp.
    """
    chance, drawn = random.Random(seed), []
    for number in range(1, count + 1):
        paths, names = [], []
        for _ in range(2):
            rate, delay = round(5 * 20 ** chance.random(), 1), round(2 * 50 ** chance.random())
            queue = chance.choice(["1 bdp", "2 bdp"])
            paths.append(f'[[path]]\nrate = "{rate} Mbit/s"\ndelay = "{delay} ms"\nqueue = "{queue}"\n')
            names.append(f"{rate:g}/{delay}")
        file = Path(directory) / f"random-{seed}-{number}.toml"
        name = f'name = "{" + ".join(names)}, drawn"\ndescription = "drawn at random, seed {seed}"\n'
        file.write_text(name + 'transfer.size = "endless"\n\n' + "\n".join(paths), encoding="utf-8")
        drawn.append(load(file))
    return drawn
