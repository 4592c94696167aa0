#!/usr/bin/env python3
"""Records `manypath demo` in a terminal of 80 x 24 and draws it as a picture that moves.

    python3 docs/figures/demo.py --binary target/release/manypath docs/figures/demo.svg    needs pyte (PyPI)

The picture shows what the terminal showed, at its own speed, and then stays at the result for some
seconds. A screen that does not change for longer than a second, as while the file is made, is shown
for a second. The picture has no script. Where pictures must not move, it shows the result.
A test (`crates/cli/tests/demo.rs`) compares the last lines with those of the present program.
"""

import argparse
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from html import escape
from pathlib import Path

import pyte

COLUMNS, ROWS = 80, 24
FRAMES_PER_SECOND = 5
TYPING_S, HOLD_S, LIMIT_S = 1.5, 7.0, 120.0
STILL_MAX_S = 1.0
PROMPT = "$ manypath demo"
CELL_WIDTH, LINE_HEIGHT, FONT_SIZE, MARGIN = 8.4, 19, 14, 14
INK, PAPER = "#d8dee9", "#1b2330"
COLOURS = {
    "default": INK, "black": "#4c566a", "red": "#f08080", "green": "#98d982", "brown": "#ebcb8b",
    "blue": "#81a1f1", "magenta": "#c99be0", "cyan": "#7fd1e0", "white": INK,
}
# How much of a cell a character fills, from the left, and how dense it is.
BLOCKS = {"█": (1.0, 1.0), "▓": (1.0, 0.7), "▒": (1.0, 0.5), "░": (1.0, 0.18)}
BLOCKS |= {chr(0x2588 + n): (1 - n / 8, 1.0) for n in range(1, 8)}


def record(command):
    """Frames of a command in a terminal: pairs of a time and lines, which are lists of cells."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    began, frames = time.monotonic(), []
    while (now := time.monotonic() - began) < LIMIT_S:
        if select.select([terminal], [], [], 0.02)[0]:
            try:
                stream.feed(os.read(terminal, 65536))
            except OSError:
                break
        if now >= len(frames) / FRAMES_PER_SECOND:
            frames.append((now, cells(screen)))
    frames.append((time.monotonic() - began, cells(screen)))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        sys.exit(f"{' '.join(command)} ended with exit code {status}:\n" + "\n".join(screen.display))
    return frames


def cells(screen):
    lines = []
    for row in range(ROWS):
        line = [(screen.buffer[row][column].data, style(screen.buffer[row][column])) for column in range(COLUMNS)]
        while line and line[-1][0] == " ":
            line.pop()
        lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def style(cell):
    colour = COLOURS.get(cell.fg) or (f"#{cell.fg}" if len(cell.fg) == 6 else INK)
    return colour, cell.bold


def runs_of(line):
    """Runs of cells of one style and one kind: a column, the text, and the style."""
    column = 0
    while column < len(line):
        first, look = line[column]
        end = column + 1
        while end < len(line) and line[end][1] == look and (line[end][0] == first if first in BLOCKS else line[end][0] not in BLOCKS):
            end += 1
        yield column, "".join(character for character, _ in line[column:end]), look
        column = end


def draw_line(line, top):
    drawn = []
    for column, text, (colour, bold) in runs_of(line):
        x = MARGIN + column * CELL_WIDTH
        paint = "" if colour == INK else f' fill="{colour}"'
        if text[0] in BLOCKS:
            filled, density = BLOCKS[text[0]]
            width = (len(text) - 1 + filled) * CELL_WIDTH
            opacity = "" if density == 1 else f' opacity="{density}"'
            drawn.append(f'<rect x="{x:.1f}" y="{top + 4}" width="{width:.1f}" height="12"{paint}{opacity}/>')
            continue
        start = len(text) - len(text.lstrip(" "))
        text = text.strip(" ")
        if text:
            weight = ' font-weight="bold"' if bold else ""
            length = f'{len(text) * CELL_WIDTH:.1f}'
            drawn.append(
                f'<text x="{x + start * CELL_WIDTH:.1f}" y="{top + 15}" textLength="{length}"{paint}{weight}>'
                f"{escape(text, quote=False)}</text>"
            )
    return "".join(drawn)


def plain(text):
    return [(character, (INK, False)) for character in text]


def film(frames):
    """Frames with the prompt above, without those that repeat the one before; and the time of all."""
    shown = [(0.0, [plain(PROMPT[:2] + "█")])]
    typed = len(PROMPT) - 2
    shown += [(TYPING_S * n / (typed + 4), [plain(PROMPT[: 2 + n] + "█")]) for n in range(1, typed + 1)]
    shown.append((TYPING_S, [plain(PROMPT)]))
    left_out = 0.0
    for at, lines in frames:
        lines = [plain(PROMPT), *lines]
        at += TYPING_S - left_out
        still = at - shown[-1][0]
        if lines != shown[-1][1]:
            late = max(0.0, still - STILL_MAX_S)
            left_out += late
            shown.append((at - late, lines))
    return shown, shown[-1][0] + HOLD_S


def draw(frames, description):
    shown, seconds = film(frames)
    rows = max(len(lines) for _, lines in shown)
    width, height = round(2 * MARGIN + COLUMNS * CELL_WIDTH), 2 * MARGIN + rows * LINE_HEIGHT
    last = len(shown) - 1
    steps = "".join(f"{at / seconds * 100:.2f}%{{transform:translateY(-{n * height}px)}}" for n, (at, _) in enumerate(shown))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>{escape(description)}</title>",
        "<style>text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}",
        f"#film{{transform:translateY(-{last * height}px);animation:film {seconds:.2f}s step-end infinite}}",
        f"@keyframes film{{{steps}100%{{transform:translateY(-{last * height}px)}}}}",
        "@media (prefers-reduced-motion:reduce){#film{animation:none}}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>',
        f'<g id="film" fill="{INK}" font-size="{FONT_SIZE}">',
    ]
    for number, (_, lines) in enumerate(shown):
        drawn = [draw_line(line, row * LINE_HEIGHT) for row, line in enumerate(lines)]
        name = ' id="last"' if number == last else ""
        parts.append(f'<g{name} transform="translate(0 {number * height + MARGIN})">{"".join(drawn)}</g>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("picture", type=Path)
    args = parser.parse_args()
    frames = record([args.binary, "demo"])
    said = " ".join("".join(character for character, _ in line).strip() for line in frames[-1][1])
    args.picture.write_text(draw(frames, f"manypath demo in a terminal. {said}"), encoding="utf-8")
    print(f"{args.picture}: {len(frames)} frames, {args.picture.stat().st_size} bytes")


if __name__ == "__main__":
    main()
