#!/usr/bin/env python3
"""Makes the reference.csv of experiments from a summary of runs of ns-2.

  reference.py SUMMARY.csv [ID...]

SUMMARY.csv has a line per parameter set: experiment, params ("name=value ..."), n, and NAME_mean, NAME_std
columns; NAME_n where not every run has a value. EXPERIMENTS below says which lines belong to an experiment and
what its swept parameters are called.
"""
import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PERCENT = "{} %".format
# Result fields: theirs, ours. Those whose deviation is not known are shown but not compared.
CMT = {"t_ack": "ack_time_s", "t_ack_minus_t_data": "from_first_data_s", "timeouts": "timeouts"}

LINE = {"ASAP": "RTX-ASAP", "SAME": "RTX-SAME", "CWND": "RTX-CWND", "SSTHRESH": "RTX-SSTHRESH", "LOSSRATE": "RTX-LOSSRATE"}.get
LOSS2 = {"loss2": ("path.2.loss", PERCENT)}
POLICY = {"policy": ("transport.rtx_policy", str.lower)}
PRESET = {"variant": ("transport.preset", str.lower)}


def kibibytes(text):
    return f"{int(text) // 1024} KiB"


def goodput(value):
    return f"{float(value) * 8000:.0f}" if value else value


def extended(text):
    """A policy with its extensions is one parameter; ours joins them."""
    policy, extensions = text.split("/")
    return policy if extensions == "none" else " + ".join([policy] + extensions.split("+"))


COUNTED = CMT | {"fr": "fast_retransmit_events"}
RTX = {"policy/ext": ("line", extended), "loss1": ("path.1.loss", PERCENT)} | LOSS2


def with_floor(experiment, *rest):
    """The runs of the package and of its copy with 2 MTU as least ssthresh: the parts for both variants."""
    return [(experiment, *rest), (f"{experiment}_2mtu", *rest)]


FAILURE = {"t_ack": "ack_time_s", "t_detect": "detected_at_s", "data_timeouts": "timeouts"}
OUTAGE = {"goodput_kBps": "outage_goodput_bps"}
CROSS = {"t_ack": "ack_time_s", "tx1": "path1_data_chunks_sent", "tx2": "path2_data_chunks_sent", "to2_2": "path2_t3_in_a_row_2"}
# Experiment: its parts: lines of the summary, what they must say, their swept parameters by our names, fields.
EXPERIMENTS = {
    "002-cmt/cmt-fig11a": [
        ("a_fig11a", {}, {"policy": ("line", LINE)} | LOSS2, CMT),
        ("a_appstripe", {"agent": "SCTP", "d2": "25"}, {"agent": ("line", lambda _: "AppStripe")} | LOSS2, {"t_merged": "ack_time_s"}),
    ],
    "002-cmt/cmt-fig11b": [
        ("a_fig11b", {}, {"policy": ("line", LINE)} | LOSS2, CMT),
        ("a_appstripe", {"agent": "SCTP", "d2": "70"}, {"agent": ("line", lambda _: "AppStripe")} | LOSS2, {"t_merged": "ack_time_s"}),
    ],
    "002-cmt/cmt-fig12": [("a_fig12_64k", {}, POLICY | LOSS2, CMT)],
    "002-cmt/cmt-fig13": [
        (name, {}, {"rbuf": ("transport.receive_buffer", kibibytes)} | POLICY | LOSS2, CMT) for name in ("a_fig13a_32k", "a_fig13b_128k")
    ],
    "001-rtx/rtx-fig6": with_floor("b_fig6", {}, RTX, COUNTED),
    "001-rtx/rtx-fig8": [("b_fig8_har", {}, RTX, COUNTED)]
    + with_floor("b_fig6", {"policy": "AllRtxAlt"}, RTX, COUNTED)
    + with_floor("b_fig12", {"policy": "AllRtxAlt"}, RTX, COUNTED),
    "001-rtx/rtx-fig9": with_floor("b_fig9", {}, {"policy/ext": ("line", extended), "loss1": ("path.1.loss", PERCENT)}, COUNTED),
    "001-rtx/rtx-fig10": [("b_fig10", {}, RTX, COUNTED), ("b_fig12", {"policy": "FrSameRtoAlt"}, RTX, COUNTED)],
    "001-rtx/rtx-fig12": with_floor("b_fig12", {}, RTX, COUNTED),
    "001-rtx/rtx-fig13": with_floor("b_fig13_1040", {}, RTX, COUNTED),
    "001-rtx/rtx-fig13-210": [("b_fig13_210", {}, RTX, COUNTED)],
    "001-rtx/rtx-fig15": with_floor("b_fig15", {}, RTX, COUNTED),
    "001-rtx/rtx-fig16": [("b_fig16", {}, RTX, COUNTED)],
    "000-cmt-pf/pf-fig6": [("c_fig6", {}, PRESET, FAILURE)],
    "000-cmt-pf/pf-fig7": [
        ("c_fig7", {}, {"variant": ("line", str), "pmr": ("pmr", str)}, OUTAGE | {"t_detect": "detected_at_s"})
    ],
    "000-cmt-pf/pf-fig8": [("c_fig8", {}, PRESET, FAILURE)],
    "000-cmt-pf/pf-fig9": [
        ("c_fig9", {}, {"rbuf": ("transport.receive_buffer", kibibytes)} | PRESET, OUTAGE | {"t_ack": "ack_time_s", "data_timeouts": "timeouts"})
    ],
    "000-cmt-pf/pf-fig12": [("c_fig12", {}, {"load2": ("load", PERCENT)} | PRESET, CROSS)],
    "000-cmt-pf/pf-fig13": [("c_fig13", {}, {"load2": ("path.2.cross.load", PERCENT)} | PRESET, CROSS)],
}


def rows_of(lines, wanted, only, names, fields):
    for line in lines:
        if line["experiment"] != wanted:
            continue
        theirs = dict(pair.split("=", 1) for pair in line["params"].split())
        if any(theirs[name] != value for name, value in only.items()):
            continue
        params = [show("/".join(theirs[part] for part in name.split("/"))) for name, (_, show) in names.items()]
        for field, ours in fields.items():
            mean, std = line.get(f"{field}_mean"), line.get(f"{field}_std", "")
            if field.endswith("kBps"):
                mean, std = goodput(mean), goodput(std)
            if mean and float(mean) >= 0:  # -1: did not happen
                compare = "yes" if std else "no"
                floor = wanted.endswith("_2mtu")
                source = f"ns-2 2.35 {'with' if floor else 'as'} {'2 MTU as least ssthresh' if floor else 'packaged'}, {wanted}"
                n = line.get(f"{field}_n") or line["n"]
                yield ["packaged-2mtu" if floor else "", *params, ours, mean, std, n, source, compare]


def main():
    with open(sys.argv[1], newline="") as file:
        lines = list(csv.DictReader(file))
    for folder, parts in EXPERIMENTS.items():
        if sys.argv[2:] and folder.split("/")[-1] not in sys.argv[2:]:
            continue
        columns = [ours for ours, _ in parts[0][2].values()]
        rows = [row for part in parts for row in rows_of(lines, *part)]
        with open(ROOT / folder / "reference.csv", "w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            columns = ["variant", *columns, "field", "mean", "std", "n", "source", "compare"]
            named = any(row[0] for row in rows)
            out.writerows([columns, *rows] if named else [row[1:] for row in [columns, *rows]])
        print(f"{folder}: {len(rows)} means")


if __name__ == "__main__":
    main()
