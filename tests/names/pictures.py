"""Reads QR codes that were printed as blocks."""

import re

try:
    from pyzbar import pyzbar
except ImportError:
    pyzbar = None

DARK = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
BLACK_ON_WHITE = "38;5;16;48;5;231"


def block_lines(text):
    """The lines of a picture: the longest run of lines that are nothing but blocks, without colours."""
    best, current = [], []
    for line in text.replace("\r", "").split("\n"):
        bare = ESCAPE.sub("", line)
        if len(bare) > 20 and set(bare) <= set(DARK):
            current.append(bare)
        else:
            current = []
        best = max(best, current, key=len)
    return best


def colours(text):
    """The sets of colours that the lines of a picture begin and end with."""
    lines = [line for line in text.replace("\r", "").split("\n") if "█" in line]
    return {tuple(ESCAPE.findall(line)) for line in lines}


def decode(text, scale=4):
    """What is in the picture, as it looks black on white."""
    lines = block_lines(text)
    if not lines:
        return None
    rows = []
    for line in lines:
        for half in (0, 1):
            rows.append([DARK[c][half] for c in line])
    width = len(rows[0]) * scale
    pixels = bytearray()
    for row in rows:
        line = b"".join((b"\0" if m else b"\xff") * scale for m in row)
        pixels += line * scale
    found = pyzbar.decode((bytes(pixels), width, len(rows) * scale), symbols=[pyzbar.ZBarSymbol.QRCODE])
    return found[0].data.decode() if found else None
