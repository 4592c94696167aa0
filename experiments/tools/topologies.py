"""Writes the scenario of mtcp-quality: random topologies, each once with a common bottleneck and once without.

    python3 experiments/tools/topologies.py > experiments/003-mtcp/mtcp-quality/scenario.toml

The numbers are drawn from a fixed seed, so that the file is the same each time.
"""

import random

from network import link, node

COUNT = 100
BY_LOSSES = {"shared_congestion": "mtcp", "shared_verdict": "sequential", "shared_interval": "100 ms", "shared_zeta": "0.05"}
PAPER = {"shared_congestion": "mtcp", "shared_interval": "200 ms"}
RULES = {
    "measured": PAPER | {"shared_verdict": "measured", "shared_zeta": "0.02"},
    "wait": PAPER | {"shared_verdict": "wait", "shared_zeta": "0.05"},
    "sequential": BY_LOSSES,
    "trial": BY_LOSSES | {"shared_congestion": "trial"},
    "rfc8382": BY_LOSSES | {"shared_congestion": "rfc8382"},
}
HEAD = """\
# Quality of the detection of shared bottlenecks: 100 random topologies, each with both paths over one congested link
# (shared) and with each over a link of its own (independent). Made by experiments/tools/topologies.py; the ranges are ours.
description = "Random topologies: which paths are found to share a bottleneck, and how soon"
time_limit = "70 s"
seeds = 1

[transport]
profile = "rfc9260"
preset = "mtcp"
receive_buffer = "1 MiB"

"""


def main():
    draw = random.Random(2026)
    text = HEAD + "".join(map(node, ["h0", "h2", "a1", "a2", "b1", "b2", "v1", "v2", "t1", "t2", "u1", "u2"])) + "\n"
    for i in (1, 2):
        text += link("h0", f"a{i}", "100 Mbit/s", "1 ms")
        text += link(f"a{i}", f"b{i}", "10 Mbit/s", "20 ms", f"core{i}", 'queue = "50 packets"\n')
        text += link(f"t{i}", f"a{i}", "100 Mbit/s", "5 ms") + link(f"b{i}", f"u{i}", "100 Mbit/s", "5 ms")
        text += link(f"v{i}", "h2", "100 Mbit/s", "5 ms", f"tail{i}")
    for a in ("b1", "b2"):
        for b in ("v1", "v2"):
            text += link(a, b, "100 Mbit/s", "1 ms")
    text += """
[[flow]]
name = "mtcp"
from = "h0"
to = "h2"
size = "endless"
start = "10 s"
until = "70 s"
path = [{ via = ["a1", "b1", "v1"] }, { via = ["a2", "b2", "v2"] }]

"""
    for i in (1, 2):
        text += f"""\
[[traffic]]
model = "responsive"
from = "t{i}"
to = "u{i}"
via = ["a{i}", "b{i}"]
generators = 2
[[traffic]]
from = "t{i}"
to = "u{i}"
via = ["a{i}", "b{i}"]
load = {{ forward = "20 %", reverse = "0 %" }}
"""
    for number in range(1, COUNT + 1):
        text += f'\n[[sweep.topology]]\nname = "{number}"\n'
        for i in (1, 2):
            text += f'"link.core{i}.rate" = "{draw.randint(20, 200) * 100} kbit/s"\n'
            text += f'"link.core{i}.delay" = "{draw.randint(5, 50)} ms"\n'
            text += f'"link.core{i}.queue" = "{draw.randint(20, 100)} packets"\n'
            text += f'"link.tail{i}.delay" = "{draw.randint(1, 40)} ms"\n'
            text += f'"traffic.{2 * i - 1}.generators" = {draw.randint(1, 6)}\n'
            text += f'"traffic.{2 * i}.load.forward" = "{draw.randint(5, 40)} %"\n'
    for kind, way in (("shared", '["a1", "b1", "v2"]'), ("independent", '["a2", "b2", "v2"]')):
        text += f'\n[[sweep.kind]]\nname = "{kind}"\n"flow.mtcp.path.2.via" = {way}\n'
    for rule, settings in RULES.items():
        text += f'\n[[sweep.rule]]\nname = "{rule}"\n'
        text += "".join(f'"transport.{name}" = "{value}"\n' for name, value in settings.items())
    print(text, end="")


if __name__ == "__main__":
    main()
