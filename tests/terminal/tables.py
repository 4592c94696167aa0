#!/usr/bin/env python3
"""Commands in a terminal of 80 columns: no line is longer, so the terminal wraps none.

    tests/terminal/tables.py --binary target/release/manypath [--require] [--pictures DIR]

Each command runs in tmux, which knows which of its lines are parts of one. --require makes a missing tmux a failure.
--pictures keeps what was seen.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from failure import Failed  # noqa: E402
from requirements import add_binary, add_require, skip  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SIZES = [(80, 24)]
TIMEOUT_S = 300
# Lines that are to be pasted stay whole: commands of the doctor, and those that repeat a run.
WHOLE = ("    ",)


class Tmux:
    """A server of its own, whose terminals remember all that scrolled away."""

    def __init__(self, folder):
        settings = folder / "tmux.conf"
        settings.write_text("set -g history-limit 100000\nset -s exit-empty off\n")
        self.command = ["tmux", "-L", f"manypath-terminal-{os.getpid()}", "-f", str(settings)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([*self.command, "kill-server"], stderr=subprocess.DEVNULL)

    def _do(self, *words):
        return subprocess.run([*self.command, *words], check=True, capture_output=True, text=True).stdout

    def seen(self, words, size, folder):
        """What a command leaves in a terminal of that size, as the lines that it printed."""
        done = folder / "done"
        done.unlink(missing_ok=True)
        quoted = " ".join(f"'{word}'" for word in words)
        line = f"cd '{folder}'; env -u COLUMNS -u LINES {quoted}; echo $? > '{done}'; exec sleep 600"
        name = f"t{time.monotonic_ns()}"
        self._do("new-session", "-d", "-s", name, "-x", str(size[0]), "-y", str(size[1]), line)
        end = time.monotonic() + TIMEOUT_S
        while not (done.exists() and done.read_text().strip()):
            if time.monotonic() > end:
                raise Failed(f"{quoted}: not done after {TIMEOUT_S} s:\n{self._do('capture-pane', '-p', '-t', name)}")
            time.sleep(0.05)
        # tmux may still read.
        time.sleep(0.2)
        # -J joins the parts of a line that was wrapped.
        text = self._do("capture-pane", "-p", "-J", "-S", "-", "-t", name)
        self._do("kill-session", "-t", name)
        return int(done.read_text()), [line.rstrip() for line in text.rstrip().splitlines()]


def width(line):
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else not unicodedata.combining(sign) for sign in line)


def wrapped(lines, columns):
    """The lines that are too wide, but for a single word such as a digest: it stays whole, so that it can be copied."""
    return [line for line in lines if width(line) > columns and " " in line.strip()]


def commands(binary, folder):
    """The commands, with the words that must be seen and the exit codes that they may have."""
    scenarios = sorted((ROOT / "examples" / "scenarios").glob("*.toml"))
    run = ["lab", "run", "cmt-fig12", "--quick"]
    for scenario in scenarios:
        yield ["sim", "run", scenario], ["runs", "goodput"], {0}
        yield ["sim", "check", scenario], ["A run ends at"], {0}
    yield ["lab", "list"], ["cmt-fig12", "002-cmt"], {0}
    yield [*run, "--seeds", "1", "--out", "first"], ["same-worst", "agreement with the reference"], {0}
    yield ["lab", "judge", "cmt-fig12", "--out", "first", "--all-points"], ["agrees", "differs"], {0}
    second = [binary, *run, "--seeds", "2..2", "--out", "second", "--quiet"]
    subprocess.run(second, cwd=folder, check=True, capture_output=True)
    yield ["lab", "compare", "first", "second"], ["experiments are the same"], {0}
    yield ["lab", "compare", "first", "second", "--all"], ["first"], {0}
    yield ["lab", "new", "made-here"], ["run it: manypath lab run made-here"], {0}
    yield ["presets"], ["adaptive (default", "fast"], {0}
    yield ["config", "show"], ["rto_min", "--all shows"], {0}
    yield ["config", "show", "--all", "-v"], ["RFC 9260"], {0}
    yield ["doctor"], [], {0, 10, 11}
    record = [binary, "sim", "run", ROOT / "examples/scenarios/uplinks.toml", "--seeds", "1", "--record", "record.jsonl"]
    subprocess.run(record, cwd=folder, check=True, capture_output=True)
    yield ["replay", "record.jsonl", "--preset", "cmt-pf"], ["one-way delay", "cmt-pf"], {0}
    yield ["demo", "--size", "4MB", "--for", "0s"], ["One path alone", "It takes about"], {0}
    with Receiver(binary, folder) as port:
        yield ["path", "list"], ["recv"], {0}
        yield ["paths", f"127.0.0.1:{port},127.0.0.2:{port}", "--probes", "3"], ["127.0.0.1", "RTT"], {0}


class Receiver:
    """`manypath recv` on loopback; its port."""

    def __init__(self, binary, folder):
        self.command = [binary, "recv", "--listen", "127.0.0.1,127.0.0.2", "--port", "0", "--dir", "received", "--json"]
        self.folder = folder

    def __enter__(self):
        (self.folder / "received").mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            self.command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        return json.loads(self.process.stdout.readline())["port"]

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def look(tmux, words, wanted, codes, size, folder, options):
    code, lines = tmux.seen([str(word) for word in words], size, folder)
    name = " ".join(Path(word).name for word in map(str, words[1:]))
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
        file = f"{size[0]} {name}".replace(" ", "-").replace("/", "_")
        (options.pictures / f"{file}.txt").write_text("\n".join(lines) + "\n")
    text = "\n".join(lines)
    # A text may be continued on the next line.
    together = " ".join(text.split())
    if code not in codes:
        raise Failed(f"{name}: exit code {code}:\n{text}")
    for word in wanted:
        if word not in together:
            raise Failed(f"{name}: no {word!r} in:\n{text}")
    if "left" in together and "runs," in together:
        raise Failed(f"{name}: the bar is still there:\n{text}")
    long = [line for line in wrapped(lines, size[0]) if not line.startswith(WHOLE)]
    if long:
        raise Failed(f"{name}: wider than {size[0]} columns:\n" + "\n".join(long))
    return name


def finds_long_lines(tmux, folder):
    """The test can fail: a long line is found, though tmux shows it in two."""
    for length, expected in ((80, 0), (81, 1)):
        _, lines = tmux.seen(["printf", "%s\\n", "x" * (length - 2) + " x"], (80, 24), folder)
        if len(wrapped(lines, 80)) != expected:
            raise Failed(f"of a line of {length} signs: {lines}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser, must=True)
    add_require(parser)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    if not shutil.which("tmux"):
        sys.exit(skip(options, "tests/terminal needs tmux"))
    binary = options.binary
    os.environ["LC_ALL"] = "C.UTF-8"
    failed = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            # Processes of other tests are not listed.
            os.environ["XDG_RUNTIME_DIR"] = temporary
            with Tmux(folder) as tmux:
                finds_long_lines(tmux, folder)
                seen = 0
                for words, wanted, codes in commands(binary, folder):
                    try:
                        look(tmux, [binary, *words], wanted, codes, size, folder, options)
                        seen += 1
                    except Failed as failure:
                        failed.append(f"{size[0]} x {size[1]}: {failure}")
                print(f"{size[0]} x {size[1]}: {seen} commands fit")
    for failure in failed:
        print(f"FAILED: {failure}", file=sys.stderr)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
