"""The arguments of all runners, and their end on a machine that lacks something."""

import sys
from pathlib import Path

BINARY = Path(__file__).resolve().parents[2] / "target/release/manypath"


def add_binary(parser, must=False):
    """The program, as an absolute path; it has no default where it `must` be named."""
    parser.add_argument("--binary", required=must, default=None if must else str(BINARY),
                        type=lambda path: str(Path(path).resolve()),
                        help="the program" + ("" if must else " [default: target/release/manypath]"))


def add_require(parser):
    parser.add_argument("--require", action="store_true", help="fails, rather than skips, where this cannot run")


def skip(options, why):
    """Says why this cannot run here; the exit code."""
    print(f"{'FAILED' if options.require else 'SKIPPED'}: {why}", file=sys.stderr)
    return 1 if options.require else 0
