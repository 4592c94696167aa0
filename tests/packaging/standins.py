"""Stand-ins for the compilers and packers that packaging/release runs, so that its steps are tested in seconds.

Each writes what the real one would write, and a line with its arguments to the file "calls".
"""

import os
import shutil


# Builds write a program that describes itself; the packers write files with the names of the real ones.
CARGO = """\
echo "cargo $*" >>"$WORK/calls"
profile=; triple=
while [ $# -gt 0 ]; do
    case $1 in
        --profile) profile=$2 ;;
        --target) triple=$2 ;;
        deb) exec cargo-deb "$@" ;;
        cyclonedx) exec cargo-cyclonedx "$@" ;;
    esac
    shift
done
# zigbuild's target may end in the version of glibc.
place=$CARGO_TARGET_DIR/${triple:+${triple%.2.28}/}$profile
mkdir -p "$place"
printf '#!/bin/sh\\necho %s "$@"\\n' "$triple" >"$place/manypath"
chmod 755 "$place/manypath"
"""
RUSTC = """\
case "$*" in
    *target-libdir*) echo "$WORK/library" ;;
    *sysroot*) echo "$WORK/sysroot" ;;
    *) echo "rustc 1.90.0" ;;
esac
"""
DEB = """\
[ ! -e "$WORK/deb-fails" ] || { echo "no such asset" >&2; exit 7; }
architecture=amd64
while [ $# -gt 0 ]; do
    case $1 in
        --output) out=$2 ;;
        --target) case $2 in aarch64*) architecture=arm64 ;; esac ;;
    esac
    shift
done
echo package >"$out/manypath_0.0.0-1_$architecture.deb"
"""
MATURIN = """\
echo "maturin $*" >>"$WORK/calls"
while [ $# -gt 0 ]; do [ "$1" != --out ] || out=$2; shift; done
echo wheel >"$out/manypath-0.0.0-cp311-abi3-any.whl"
"""
CYCLONEDX = """\
while [ $# -gt 0 ]; do [ "$1" != --manifest-path ] || manifest=$2; shift; done
echo "{\\"ref\\": \\"path+file://${manifest%/Cargo.toml}\\"}" >"${manifest%/*}/manypath_bin.cdx.json"
"""
STRIP = 'cp "$3" "$2"\n'
PROGRAMS = {"cargo": CARGO, "cargo-zigbuild": 'exec cargo "$@"\n', "rustc": RUSTC, "cargo-deb": DEB, "maturin": MATURIN,
            "cargo-cyclonedx": CYCLONEDX, "strip": STRIP}


def environment(work, pins):
    """The environment in which the stand-ins take the places of the tools, which count as installed."""
    folder = work / "target/packaging"
    (folder / "bin").mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (folder / "bin" / name).write_text(f"#!/usr/bin/env bash\nset -eu\n{text}")
        (folder / "bin" / name).chmod(0o755)
    (folder / "installed").write_text("\n".join(pins))
    (work / "library").mkdir()
    (work / "library/libstd-0.rlib").touch()
    (work / "calls").touch()
    # The compiler of C is looked for, but not run.
    if shutil.which("cc") is None:
        (folder / "bin/cc").symlink_to("/bin/true")
    return os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "WORK": str(work),
                         "CARGO_TARGET_DIR": str(work / "target")}
