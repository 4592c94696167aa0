"""A bare Debian, from where apt on this machine gets its packages."""

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging"))
import musl  # noqa: E402
from musl import KEYRING, Missing, archive, call  # noqa: E402


def bare(top, *more):
    """Makes a Debian of the essential packages, and those of `more`."""
    address, codename = archive()
    if shutil.which("debootstrap") is None:
        raise Missing("debootstrap is not installed")
    include = [f"--include={','.join(more)}"] if more else []
    call("debootstrap", "--variant=minbase", f"--keyring={KEYRING}", *include, codename, top, address, seconds=900)
