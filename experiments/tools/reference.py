#!/usr/bin/env python3
"""Makes the reference.csv of experiments from a summary of runs of ns-2.

  reference.py SUMMARY.csv [ID...]
  reference.py --release 3.5 FOLDER [ID...]

The first form writes the lines of ns-2 2.35 (release 3.8 of its SCTP module), the second those of an older release.
Each keeps the lines of the other. FOLDER has a file per experiment with a line for each run: experiment, the
parameters, seed, done, and a column per field. RELEASES below says which files belong to an experiment.

SUMMARY.csv has a line per parameter set: experiment, params ("name=value ..."), n, and NAME_mean, NAME_std
columns; NAME_n where not every run has a value. EXPERIMENTS below says which lines belong to an experiment and
what its swept parameters are called.
"""
import collections
import csv
import pathlib
import statistics
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




# ---- Older releases ----

DUMBBELL = {
    "policy": ("policy", {"AllRtxAlt": "all-rtx-alt", "AllRtxSame": "all-rtx-same"}.get),
    "loss 1": ("primary loss", PERCENT),
    "loss 2": ("alternate loss", PERCENT),
}
# Runs of the dumbbell are grouped by the loss that they met. A mean of fewer says nothing.
LEAST_IN_GROUP = 3
ACK = {"t_ack": "ack_time_s"}
LINE_BY_LOSS1 = {"policy/ext": ("line", extended), "loss1": ("path.1.loss", PERCENT)}
RTO = ACK | {
    "rto1_mean_over_time": "primary_rto_s",
    "rto2_mean_over_time": "alternate_rto_s",
    "rtx1": "path1_retransmissions",
    "rtx2": "path2_retransmissions",
    "rtt_samples2": "path2_rtt_samples",
    "timeouts2": "path2_t3_expirations",
}
TRANSFER = {"policy": ("line", LINE)} | LOSS2
STRIPED = ({"agent": "SCTP"}, {"agent": ("line", lambda _: "AppStripe")} | LOSS2, {"t_merged": "ack_time_s"})
PF_BUFFER = {"rbuf": ("transport.receive_buffer", kibibytes)} | PRESET
# Release: its experiments: the variant of ours, and the parts as above.
RELEASES = {
    "3.4": {
        "001-rtx/rtx-fig3": ("release-3.4", [("b_fig3", {}, DUMBBELL, ACK)]),
        "001-rtx/rtx-fig4": ("release-3.4", [("b_fig4", {}, {"loss1": ("path.1.loss", PERCENT)} | LOSS2, RTO)]),
    },
    "3.5": {
        "001-rtx/rtx-fig3": ("scenario", [("b_fig3", {}, DUMBBELL, ACK)]),
        "001-rtx/rtx-fig4": ("scenario", [("b_fig4", {}, {"loss1": ("path.1.loss", PERCENT)} | LOSS2, RTO)]),
        "001-rtx/rtx-fig6": ("scenario", [("b_fig6", {}, RTX, ACK)]),
        "001-rtx/rtx-fig8": (
            "scenario",
            [("b_fig8_har", {}, RTX, ACK), ("b_fig6", {"policy": "AllRtxAlt"}, RTX, ACK), ("b_fig12", {"policy": "AllRtxAlt"}, RTX, ACK)],
        ),
        "001-rtx/rtx-fig9": ("scenario", [("b_fig9", {}, LINE_BY_LOSS1, ACK)]),
        "001-rtx/rtx-fig10": ("scenario", [("b_fig10", {}, RTX, ACK), ("b_fig12", {"policy": "FrSameRtoAlt"}, RTX, ACK)]),
        "001-rtx/rtx-fig12": ("scenario", [("b_fig12", {}, RTX, ACK)]),
        "001-rtx/rtx-fig13": ("scenario", [("b_fig13_1040", {}, RTX, ACK)]),
        "001-rtx/rtx-fig13-210": ("scenario", [("b_fig13_210", {}, RTX, ACK)]),
        "001-rtx/rtx-fig15": ("release-3.5", [("b_fig15", {}, RTX, ACK)]),
    },
    "3.6": {
        "002-cmt/cmt-fig11a": ("release-3.6", [("a_fig11a", {}, TRANSFER, ACK), ("a_appstripe", *STRIPED)]),
        "002-cmt/cmt-fig11b": ("release-3.6", [("a_fig11b", {}, TRANSFER, ACK)]),
        "002-cmt/cmt-fig12": ("release-3.6", [("a_fig12_64k", {}, POLICY | LOSS2, ACK)]),
        "002-cmt/cmt-fig13": (
            "release-3.6",
            [(name, {}, {"rbuf": ("transport.receive_buffer", kibibytes)} | POLICY | LOSS2, ACK) for name in ("a_fig13a_32k", "a_fig13b_128k")],
        ),
    },
    "3.7": {
        "000-cmt-pf/pf-fig6": ("release-3.7", [("c_fig6", {}, PRESET, FAILURE)]),
        "000-cmt-pf/pf-fig8": ("release-3.7", [("c_fig8", {}, PRESET, FAILURE)]),
        "000-cmt-pf/pf-fig9": ("release-3.7", [("c_fig9", {}, PF_BUFFER, OUTAGE | ACK)]),
        "000-cmt-pf/pf-fig13": ("release-3.7", [("c_fig13", {}, {"load2": ("path.2.cross.load", PERCENT)} | PRESET, CROSS)]),
    },
}
# Experiments that judge the runs of another one: what the release says of their claims, in a file of its own.
CROSS_TIMEOUTS = {f"to2_{n}": f"path2_t3_in_a_row_{n}" for n in (2, 3, 4, 5)}
CROSS_SENT = {"tx1": "path1_data_chunks_sent", "tx2": "path2_data_chunks_sent"}
CROSS_PARAMS = {"load2": ("path.2.cross.load", PERCENT)} | PRESET
SECOND_VERDICTS = {
    "3.7": {
        "000-cmt-pf/pf-tab1": [("c_fig13", {}, CROSS_PARAMS, CROSS_TIMEOUTS)],
        "000-cmt-pf/pf-tab2": [("c_fig13", {}, CROSS_PARAMS, CROSS_SENT)],
        "000-cmt-pf/pf-fitted": [("cross-scan", {"setting": ".75/1.5"}, CROSS_PARAMS, CROSS_TIMEOUTS | CROSS_SENT)],
    },
}
NOT_COMPARED = ("timeouts", "path2_t3_in_a_row_2")


def note_losses(run):
    """Adds the observed loss of each path in whole percent: of the packets of both ends, those that did not arrive."""
    for path in "12":
        sent = int(run[f"psA{path}"]) + int(run[f"psB{path}"])
        arrived = int(run[f"prB{path}"]) + int(run[f"prA{path}"])
        run[f"loss {path}"] = str(int(100 * (sent - arrived) / sent + 0.5)) if sent else "0"


def mean_rows(release, variant, folder, part):
    """The means of the runs that ended, one for each set of parameters and field."""
    wanted, only, names, fields = part
    with open(folder / f"{wanted}.csv", newline="") as file:
        runs = [run for run in csv.DictReader(file) if run.get("done", "1") == "1"]
    is_grouped = "loss 1" in names
    points = collections.defaultdict(list)
    for run in runs:
        if is_grouped:
            note_losses(run)
        if all(run[name] == value for name, value in only.items()):
            params = tuple(show("/".join(run[part] for part in name.split("/"))) for name, (_, show) in names.items())
            points[params].append(run)
    least = LEAST_IN_GROUP if is_grouped else 1
    for params, of_point in sorted(points.items()) if is_grouped else points.items():
        if len(of_point) < least:
            continue
        for field, ours in fields.items():
            scale = 8000 if field.endswith("kBps") else 1
            values = [float(run[field]) * scale for run in of_point if float(run[field]) >= 0]  # -1: did not happen
            if not values:
                continue
            std = f"{statistics.stdev(values):.3f}" if len(values) > 1 else ""
            compare = "no" if ours in NOT_COMPARED else "yes"
            source = f"release {release} of ns-2's SCTP module, {wanted}"
            row = {ours_name: value for (ours_name, _), value in zip(names.values(), params)}
            yield row | {
                "variant": variant,
                "field": ours,
                "mean": f"{statistics.fmean(values):.3f}",
                "std": std,
                "n": str(len(values)),
                "source": source,
                "compare": compare,
            }


def is_of_release(row, release=None):
    return row["source"].startswith(f"release {release}" if release else "release ")


def write_rows(path, rows):
    last = ["field", "mean", "std", "n", "source", "compare"]
    params = [name for row in rows for name, value in row.items() if value and name not in ("variant", *last)]
    first = ["variant"] if any(row.get("variant") for row in rows) else []
    columns = [*first, *dict.fromkeys(params), *last]
    with open(path, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerows([columns, *([row.get(name, "") for name in columns] for row in rows)])


def kept_rows(path, keep):
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        return [row for row in csv.DictReader(file) if keep(row)]


# A run of the release with a HEARTBEAT to the alternate when the association is up: 60 seeds, 84.2 s with a 95 % interval
# of 5.1 s to each side.
WITH_HEARTBEAT = {
    ("3.5", "001-rtx/rtx-fig6"): [
        {
            "variant": "release-3.5-heartbeat-at-start",
            "line": "AllRtxAlt",
            "path.1.loss": "5 %",
            "path.2.loss": "5 %",
            "field": "ack_time_s",
            "mean": "84.2",
            "std": "19.7",
            "n": "60",
            "source": "release 3.5 of ns-2's SCTP module with a HEARTBEAT at the start",
            "compare": "yes",
        }
    ]
}


def add_release(release, folder, ids):
    for name, (variant, parts) in RELEASES[release].items():
        if ids and name.split("/")[-1] not in ids:
            continue
        path = ROOT / name / "reference.csv"
        rows = kept_rows(path, lambda row: not is_of_release(row, release))
        new = [row for part in parts for row in mean_rows(release, variant, pathlib.Path(folder), part)]
        new += WITH_HEARTBEAT.get((release, name), [])
        write_rows(path, rows + new)
        print(f"{name}: {len(new)} means of release {release}")
    for name, parts in SECOND_VERDICTS.get(release, {}).items():
        if not ids or name.split("/")[-1] in ids:
            rows = [row for part in parts for row in mean_rows(release, "", pathlib.Path(folder), part)]
            write_rows(ROOT / name / f"release-{release}.csv", rows)


def main():
    if sys.argv[1] == "--release":
        return add_release(sys.argv[2], sys.argv[3], sys.argv[4:])
    with open(sys.argv[1], newline="") as file:
        lines = list(csv.DictReader(file))
    for folder, parts in EXPERIMENTS.items():
        if sys.argv[2:] and folder.split("/")[-1] not in sys.argv[2:]:
            continue
        columns = ["variant", *(ours for ours, _ in parts[0][2].values()), "field", "mean", "std", "n", "source", "compare"]
        path = ROOT / folder / "reference.csv"
        rows = [dict(zip(columns, row)) for part in parts for row in rows_of(lines, *part)]
        write_rows(path, rows + kept_rows(path, is_of_release))
        print(f"{folder}: {len(rows)} means")


if __name__ == "__main__":
    main()
