"""Compares the transitions of random runs with those of the model."""

from collections import defaultdict

HEADER = "from,cause,tag,to,tags\n"
# Chunks that move no association, and those that the model does not have.
NEUTRAL = {"HEARTBEAT", "HEARTBEAT-ACK", "other"}
# The application of the simulator drops an association for a newer one of its peer.
SAME = {"forget": "abort"}
OUTSTANDING = "nothing-outstanding"
# The runs do not note when these leave an association as it was.
SILENT = {"INIT", "DATA", "SACK", "HEARTBEAT", "HEARTBEAT-ACK", "timer"}
CHANGES = ["-", "same", "peer", "both"]


class Model:
    """The transitions of the model, by state and cause."""

    def __init__(self, lines):
        self.rows = [tuple(line.strip().split(",")) for line in lines]
        self.steps = defaultdict(list)
        for row in self.rows:
            self.steps[row[0], row[1]].append(row)

    def explain(self, start, causes, tag, end, change):
        """The rows that lead from `start` to `end` by these causes, or None. `causes` are the chunks of a packet in
        their order; after each, nothing may be outstanding any more. `tag` is the packet's, by the association that
        it met; a chunk before may have made that its own."""
        ways = self.settle([(start, [])])
        for number, cause in enumerate(causes):
            tags = {tag} if number == 0 else {tag, "own"}
            ways = self.settle([
                (row[3], [*rows, row])
                for state, rows in ways
                for row in self.steps[state, cause]
                if row[2] in tags or row[2] == "-"
            ] + [(state, rows) for state, rows in ways if state == "CLOSED" and number > 0])
        fitting = [rows for state, rows in ways if state == end and self.change_of(rows, start, end) == change]
        return min(fitting, key=len, default=None)

    def settle(self, ways):
        more = [
            (row[3], [*rows, row]) for state, rows in ways for row in self.steps[state, OUTSTANDING]
        ]
        return ways + more

    @staticmethod
    def change_of(rows, start, end):
        """What became of the tags on this way."""
        opening = {"CLOSED", "COOKIE-WAIT", "COOKIE-ECHOED"}
        if start in opening or end in opening:
            return "-"
        return max(["same", *(row[4] for row in rows)], key=CHANGES.index)

    def noted(self):
        """The rows that the runs would note."""
        def is_noted(row):
            start, cause, tag, end, change = row
            stays = start == end and change in ("-", "same")
            return not stays or (start != "CLOSED" and cause not in SILENT and tag in ("own", "reflected"))
        return {row for row in self.rows if is_noted(row)}


def causes_of(text):
    """The causes of a noted transition that can move an association."""
    causes = [SAME.get(cause, cause) for cause in text.split("+")]
    return [cause for cause in causes if cause not in NEUTRAL]


def compare(model, lines):
    """The noted transitions outside the model, the rows of the model that explain the others, and how many
    transitions were noted."""
    outside, used, count = [], set(), 0
    for line in lines:
        start, causes, tag, end, change, times = line.strip().split(",")
        count += int(times)
        rows = model.explain(start, causes_of(causes), tag, end, change)
        if rows is None:
            outside.append(line.strip())
        else:
            used.update(rows)
    return outside, used, count


def check(table, seen):
    """Prints the comparison of these files; True if every transition is inside the model."""
    model = Model(table.read_text().splitlines()[1:])
    lines = [line for path in seen for line in path.read_text().splitlines()]
    outside, used, count = compare(model, lines)
    noted = model.noted()
    print(f"{count:,} transitions of random runs, {len(lines)} different ones; {len(outside)} are outside the model")
    for line in outside:
        print(f"FAILED: outside the model: {line}")
    print(f"they cover {len(noted & used)} of the model's {len(noted)} transitions that runs note; never seen:")
    for row in sorted(noted - used):
        print("   ", ",".join(row))
    return bool(lines) and not outside
