#!/usr/bin/env python3
"""Runs every command of a page of the documentation, as a reader does who follows it from the top.

    tests/docs/run.py --binary target/release/manypath docs/tutorial.md [--update] [--keep DIR | --in DIR]

The page's code blocks, in order, in one empty folder, or in that of --in, with the binary on PATH:

    ```toml file=two.toml     is written to that file
    ```toml append=two.toml   is added to its end
    ```sh                     is run by bash; each command must succeed
    ```sh exit=2              the block must end with that exit code
    ```text                   directly after commands: what they print, standard error too
    ```text numbers=any       the same, but numbers may be others: results, which change with the engine
    ```text drawing=any       the same, and rows between axes, which have numbers and a plot, may have any
    ```console                for the reader alone: builds, which take long
    ```rust                   for `cargo test --doc`

Stated output is compared line by line; white space at the ends of lines does not count, `…` in a line stands for any
text, and a line that is only `…` for any lines. Other code blocks are refused, so that nothing on the page is left
out by accident. --update writes what was printed into blocks that differ, be it in numbers.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FENCE = re.compile(r"^```(\S*) ?(.*)$")
TIMEOUT_S = 300
# Kinds of blocks that are not for this program.
ELSEWHERE = ("console", "rust")


NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")


class Wrong(Exception):
    def __init__(self, line, what):
        super().__init__(what)
        self.line = line


class Block:
    def __init__(self, line, kind, options):
        self.line, self.kind, self.options, self.text = line, kind, options, []

    def body(self):
        return "\n".join(self.text) + "\n"


def blocks_of(lines):
    """The code blocks, and between two of them None if there is prose."""
    found, block = [], None
    for number, line in enumerate(lines, 1):
        fence = FENCE.match(line)
        if block is None and fence:
            block = Block(number, fence[1], dict(o.partition("=")[::2] for o in fence[2].split()))
        elif block is not None and line == "```":
            found.append(block)
            block = None
        elif block is not None:
            block.text.append(line)
        elif line.strip():
            found.append(None)
    if block is not None:
        raise Wrong(block.line, "this code block has no end")
    return found


def without_numbers(line):
    """The line with a sign for each number, and nothing that depends on how long they are."""
    line = re.sub(r"[─═]+", "─", NUMBER.sub("#", line))
    return re.sub(r"\s+", " ", line).strip()


def without_plot(line):
    """The line without numbers, and of a row of a plot its axis only."""
    axis = re.match(r"[ \d.]*[│┤]", line)
    return "│" if axis else without_numbers(re.sub("[─┬]+", "─", line))


def is_stated(block, printed, exactly):
    for option, outline in (("numbers", without_numbers), ("drawing", without_plot)):
        if block.options.get(option) == "any" and not exactly:
            return fits([outline(line) for line in block.text], [outline(line) for line in printed])
    return fits(block.text, printed)


def fits(expected, printed):
    """Whether the printed lines are the stated ones."""
    if not expected:
        return not printed
    first, rest = expected[0], expected[1:]
    if first.strip() == "…":
        return any(fits(rest, printed[n:]) for n in range(len(printed) + 1))
    if not printed:
        return False
    pattern = ".*".join(re.escape(part) for part in first.rstrip().split("…"))
    return re.fullmatch(pattern, printed[0].rstrip()) is not None and fits(rest, printed[1:])


def run(block, folder, environment):
    expected = int(block.options.get("exit", 0))
    try:
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", block.body()],
            cwd=folder, env=environment, text=True, timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
    except subprocess.TimeoutExpired:
        raise Wrong(block.line, f"not done after {TIMEOUT_S} s") from None
    if done.returncode != expected:
        raise Wrong(block.line, f"exit code {done.returncode}, not {expected}; it printed:\n{done.stdout}")
    return done.stdout.rstrip("\n").split("\n")


def take(block, folder, environment):
    """Does what a block says that is no output. Returns what it printed."""
    options = set(block.options)
    if block.kind == "sh" and options <= {"exit"}:
        return run(block, folder, environment)
    if options not in ({"file"}, {"append"}):
        raise Wrong(block.line, "neither a file (file=, append=), commands (sh) nor output (text)")
    name = block.options.get("file") or block.options.get("append")
    target = (folder / name).resolve()
    if folder.resolve() not in target.parents:
        raise Wrong(block.line, f"{name} is outside the reader's folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("a" if "append" in options else "w") as file:
        file.write(block.body())
    return None


def follow(page, folder, environment, renewed):
    """Does what the page says. Returns how many blocks of commands ran and how many outputs were compared.

    With a dictionary for `renewed`, outputs that differ go there, by line."""
    printed, ran, compared = None, 0, 0
    for block in blocks_of(page.read_text().split("\n")):
        if block is None or block.kind in ELSEWHERE:
            printed = None
        elif block.kind != "text" or block.options not in ({}, {"numbers": "any"}, {"drawing": "any"}):
            printed = take(block, folder, environment)
            ran += printed is not None
        elif printed is None:
            raise Wrong(block.line, "output without commands directly before it")
        else:
            compared += 1
            if not is_stated(block, printed, exactly=renewed is not None):
                if renewed is None:
                    raise Wrong(block.line, "the commands print something else:\n" + "\n".join(printed))
                renewed[block.line] = (len(block.text), printed)
            printed = None
    if not ran or not compared:
        raise Wrong(1, "nothing was run or nothing was compared")
    return ran, compared


def renew(page, renewed):
    lines = page.read_text().split("\n")
    for line, (length, printed) in sorted(renewed.items(), reverse=True):
        lines[line : line + length] = [text.rstrip() for text in printed]
    page.write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--keep", type=Path, help="an empty folder to work in, which is kept")
    parser.add_argument("--in", dest="folder", type=Path, help="the folder to work in, for pages that only read")
    parser.add_argument("pages", type=Path, nargs="+")
    args = parser.parse_args()
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
        if any(args.keep.iterdir()):
            sys.exit(f"{args.keep} is not empty")
    path = f"{args.binary.resolve().parent}{os.pathsep}{os.environ['PATH']}"
    # Widths and colours as in a pipe, whatever the caller's terminal.
    environment = {**os.environ, "PATH": path, "COLUMNS": "120", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    failed = False
    for page in args.pages:
        with tempfile.TemporaryDirectory() as temporary:
            renewed = {} if args.update else None
            try:
                ran, compared = follow(page, args.folder or args.keep or Path(temporary), environment, renewed)
                news = f", {len(renewed)} of them renewed" if renewed else ""
                print(f"{page}: {ran} blocks of commands, {compared} outputs as stated{news}")
            except Wrong as wrong:
                print(f"{page}:{wrong.line}: {wrong}", file=sys.stderr)
                failed = True
            if renewed:
                renew(page, renewed)
    sys.exit(failed)


if __name__ == "__main__":
    main()
