"""Writes the scenarios of mtcp-fig13 and mtcp-fig14: pairs of hosts in an overlay, a direct path and four through relays.

    for f in 13 14; do python3 experiments/tools/overlay_pairs.py $f > experiments/003-mtcp/mtcp-fig$f/scenario.toml; done

The numbers are drawn from a fixed seed, so that the file is the same each time.
"""

import math
import random
import sys

from network import link, node

PATHS = 5
PAIRS = {13: 6, 14: 9}
WHERE = {13: "each path has a bottleneck of its own", 14: "all paths have theirs in common, where they begin"}
HEAD = """\
# mTCP paper, section 5.6, Fig. {figure}: pairs of hosts of which {where}. A flow over the
# direct path and four relays (MP_1), one over the direct path (INET), and one over the path with the best score (RON), one after the
# other, 40 s each. Made by experiments/tools/overlay_pairs.py; the ranges are ours.
description = "Five paths of an overlay, the direct one, and the one with the best score: {where}"
time_limit = "160 s"
seeds = 3

[transport]
profile = "rfc9260"
preset = "mtcp"
receive_buffer = "1 MiB"

"""


def way(i):
    return f'["n0", "n1", "a{i}", "b{i}", "f"]'


def flow(name, start, paths):
    ways = ", ".join(f"{{ via = {way(i)} }}" for i in paths)
    return f"""
[[flow]]
name = "{name}"
from = "h0"
to = "h2"
size = "endless"
start = "{start} s"
until = "{start + 40} s"
path = [{ways}]
"""


def traffic(source, sink, a, b):
    return f"""
[[traffic]]
model = "responsive"
from = "{source}"
to = "{sink}"
via = ["{a}", "{b}"]
generators = 1
[[traffic]]
from = "{source}"
to = "{sink}"
via = ["{a}", "{b}"]
load = {{ forward = "10 %", reverse = "0 %" }}
"""


def score(rtt_ms, loss):
    """The paper's, after RON: packets a second."""
    return math.sqrt(1.5) / (rtt_ms / 1000 * math.sqrt(loss))


def main():
    figure = int(sys.argv[1])
    is_common = figure == 14
    draw = random.Random(figure)
    numbers = range(1, PATHS + 1)
    names = ["h0", "h2", "n0", "n1", "f"] + [f"{kind}{i}" for i in numbers for kind in "ab"]
    sources = [0] if is_common else numbers
    names += [f"{kind}{i}" for i in sources for kind in "tu"]
    text = HEAD.format(figure=figure, where=WHERE[figure]) + "".join(map(node, names)) + "\n"
    fast = "100 Mbit/s"
    text += link("h0", "n0", fast, "1 ms") + link("n0", "n1", fast, "1 ms", "near", 'queue = "50 packets"\n')
    text += link("f", "h2", fast, "1 ms")
    for i in numbers:
        text += link("n1", f"a{i}", fast, "1 ms") + link(f"b{i}", "f", fast, "1 ms")
        text += link(f"a{i}", f"b{i}", fast, "20 ms", f"core{i}", 'queue = "50 packets"\n')
    ends = [("n0", "n1")] if is_common else [(f"a{i}", f"b{i}") for i in numbers]
    for i, (a, b) in zip(sources, ends):
        text += link(f"t{i}", a, fast, "5 ms") + link(b, f"u{i}", fast, "5 ms")
    text += flow("mp", 10, numbers) + flow("inet", 60, [1]) + flow("ron", 110, [1])
    for i, (a, b) in zip(sources, ends):
        text += traffic(f"t{i}", f"u{i}", a, b)
    for number in range(1, PAIRS[figure] + 1):
        text += f'\n[[sweep.pair]]\nname = "{number}"\n'
        if is_common:
            text += f'"link.near.rate" = "{draw.randint(20, 120) * 100} kbit/s"\n'
        best = (0, 0)
        for i in numbers:
            delay, loss = draw.randint(10, 60), draw.choice([0.0001, 0.0003, 0.001, 0.003])
            text += f'"link.core{i}.delay" = "{delay} ms"\n"link.core{i}.loss" = "{loss * 100:g} %"\n'
            if not is_common:
                text += f'"link.core{i}.rate" = "{draw.randint(10, 100) * 100} kbit/s"\n'
            best = max(best, (score(2 * (delay + 5), loss), i))
        for n in range(len(ends)):
            text += f'"traffic.{2 * n + 1}.generators" = {draw.randint(1, 3)}\n'
            text += f'"traffic.{2 * n + 2}.load.forward" = "{draw.randint(5, 20)} %"\n'
        text += f'"flow.ron.path.1.via" = {way(best[1])}\n'
    text += """
[[sweep.verdict]]
name = "measured"
"transport.shared_verdict" = "measured"
[[sweep.verdict]]
name = "sequential"
"transport.shared_verdict" = "sequential"
"transport.shared_interval" = "100 ms"
"transport.shared_zeta" = "0.05"
"""
    print(text, end="")


if __name__ == "__main__":
    main()
