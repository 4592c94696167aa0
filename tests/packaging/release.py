#!/usr/bin/env python3
"""Tests packaging/release, and installs what it made in a bare Debian, as docs/install.md says.

    tests/packaging/release.py [--files target/release-files] [--require] [CASE...]

"program", "package" and "python" copy the files into a Debian of the essential packages, run there the lines that
docs/install.md has for them, and use what is installed: --version, demo, send, relay and proxy over loopback, or a
simulation from Python. They need root. "emulated" tries the files for arm64 in qemu. Nothing remains but what was
built, in target/.

--require fails instead of skipping what cannot be done on this machine.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import standins  # noqa: E402
from debian import Missing, musl  # noqa: E402
from failure import Failed, expect  # noqa: E402
from installs import Roots, use  # noqa: E402
from requirements import add_require  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
RELEASE, BUILD = ROOT / "packaging/release", ROOT / "packaging/build"
PAGE = ROOT / "docs/install.md"
ARCHITECTURE = os.uname().machine
SIMULATION = """
import manypath
from manypath import sim
runs = sim.run("/two-paths.toml", seeds=2)
assert len(runs) == 12, runs  # 2 seeds of the 6 points of its sweep
print(manypath.__version__, len(runs), "runs")
"""


def run(*command, **more):
    """Exit code and both outputs of a command."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=600, check=False, **more)
    return done.returncode, done.stdout


def single(folder, pattern):
    """The one file of this pattern."""
    found = sorted(folder.glob(pattern))
    expect(len(found) == 1, f"{pattern}: {[path.name for path in found]} in {folder}")
    return found[0]


# The commands


def arguments(_options, work):
    """Wrong arguments change nothing, and the error says what is right."""
    out = work / "out"
    wrong = [
        (RELEASE, ["--arch", "sparc"], "'x86_64'"),
        (RELEASE, ["--only", "rpm"], "'static'"),
        (RELEASE, ["--profile", "dev"], "for debugging"),
        (RELEASE, ["--only", "deb", "--arch", "x86_64", "aarch64"], "--only static"),
        (RELEASE, ["extra"], "unrecognized"),
        (BUILD, ["deb", "--arch", "sparc"], "x86_64 or aarch64"),
        (BUILD, ["wheel", "--glibc", "new"], "such as 2.28"),
        (BUILD, ["deb", "--profile", "dev"], "for debugging"),
        (BUILD, ["rpm"], "packaging/build deb"),
        (BUILD, ["deb", "--fast"], "packaging/build deb"),
    ]
    for program, words, said in wrong:
        code, told = run(program, *words, "--out", out)
        expect(code in (1, 2) and said in told and "Traceback" not in told, f"{program.name} {words}: {code}\n{told}")
        expect(not out.exists(), f"{program.name} {words} made {out}")
    for program, example in ((RELEASE, "packaging/release --arch"), (BUILD, "packaging/build static")):
        code, told = run(program, "--help")
        expect(code == 0 and example in told, f"{program.name} --help: {code}\n{told}")
    return f"{len(wrong)} command lines"


def folder(_options, work):
    """Other people's files in --out are kept."""
    out = work / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work\n")
    code, told = run(RELEASE, "--only", "sbom", "--out", out)
    expect(code == 1 and "a folder of its own" in told and "thesis.txt" in told, f"{code}\n{told}")
    expect([path.name for path in out.iterdir()] == ["thesis.txt"], "the folder was changed")
    code, told = run(RELEASE, "--only", "sbom", "--out", out / "thesis.txt")
    expect(code == 1 and "cannot use" in told and "Traceback" not in told, f"{code}\n{told}")
    return "kept"


def tools(_options, work):
    """What is missing is named before anything is done, with the remedy."""
    (work / "bin").mkdir()
    for program in ("gzip", "tar", "uname"):
        (work / "bin" / program).symlink_to(shutil.which(program))
    environment = {"PATH": str(work / "bin"), "HOME": str(work)}
    code, told = run(sys.executable, RELEASE, "--out", work / "out", env=environment)
    for said in ("lacks", "cargo: https://rustup.rs", "cc: apt install gcc"):
        expect(code == 3 and said in told, f"no {said!r}: {code}\n{told}")
    expect("gzip:" not in told and not (work / "out").exists(), told)
    return "named"


def pins():
    """The versions of Python's packages that packaging/release installs."""
    text = RELEASE.read_text()
    table = re.search(r"^PYTHON_TOOLS = \{(.*?)\}", text, re.M | re.S)[1]
    return [f"{name}=={version}" for name, version in re.findall(r'"(\S+?)": "(\S+?)"', table)]


def steps(_options, work):
    """All steps, with stand-ins for compilers and packers: which files there are, and how each is built."""
    environment, out = standins.environment(work, pins()), work / "out"
    code, told = run(RELEASE, "--profile", "checks", "--out", out, env=environment)
    expect(code == 0 and "[1/8] tools" in told and "minutes" in told.splitlines()[0], f"{code}\n{told}")
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    wanted = {f"manypath-{version}-x86_64-linux.tar.gz", f"manypath-{version}-aarch64-linux.tar.gz", "SHA256SUMS",
              f"manypath-{version}.cdx.json", "manypath_0.0.0-1_amd64.deb", "manypath_0.0.0-1_arm64.deb",
              "manypath-0.0.0-cp311-abi3-any.whl"}
    there = {path.name for path in out.iterdir()}
    expect(there == wanted, f"missing: {sorted(wanted - there)}; too many: {sorted(there - wanted)}")
    expect(run("sha256sum", "-c", "SHA256SUMS", cwd=out)[0] == 0, "SHA256SUMS")
    expect("file:///manypath/crates/cli" in (out / f"manypath-{version}.cdx.json").read_text(), "the SBOM's place")
    calls = (work / "calls").read_text()
    other = "aarch64" if ARCHITECTURE == "x86_64" else "x86_64"
    for said in (f"--target {ARCHITECTURE}-unknown-linux-gnu.2.28", "--zig", "--compatibility manylinux_2_28",
                 f"--target {other}-unknown-linux-musl"):
        expect(said in calls, f"no {said!r} in\n{calls}")
    # A second run takes the place of the first. A step that fails says what its program said.
    (work / "deb-fails").touch()
    code, told = run(RELEASE, "--profile", "checks", "--out", out, env=environment)
    expect(code == 1 and "no such asset" in told and "Traceback" not in told, f"{code}\n{told}")
    expect(not (out / "SHA256SUMS").exists(), "checksums of half a release")
    return f"{len(wanted)} files"


# The files


def sums(options, work):
    """SHA256SUMS has every file, and notices a changed one."""
    code, told = run("sha256sum", "-c", "SHA256SUMS", cwd=options.files)
    expect(code == 0, told)
    listed = {line.split()[1] for line in (options.files / "SHA256SUMS").read_text().splitlines()}
    there = {path.name for path in options.files.iterdir()} - {"SHA256SUMS"}
    expect(listed == there, f"listed: {sorted(listed)}; there: {sorted(there)}")
    name = sorted(listed)[0]
    (work / name).write_bytes((options.files / name).read_bytes() + b"\n")
    code, told = run("sha256sum", "-c", "--ignore-missing", options.files / "SHA256SUMS", cwd=work)
    expect(code != 0, f"a changed {name} is not noticed")
    return f"{len(listed)} files"


def sbom(options, _work):
    """The SBOM has each package that is linked into the program, with version and licence."""
    described = json.loads(single(options.files, "*.cdx.json").read_text())
    expect((described["bomFormat"], described["specVersion"]) == ("CycloneDX", "1.5"), "no CycloneDX 1.5")
    expect(str(ROOT) not in json.dumps(described), "it names a folder of this machine")
    licences = {(part["name"], part["version"]): part.get("licenses") for part in described["components"]}
    unlicensed = [name for name, licence in licences.items() if not licence]
    expect(not unlicensed, f"without licence: {unlicensed}")
    code, tree = run("cargo", "tree", "--quiet", "--locked", "-p", "manypath-cli", "-e", "normal", "--prefix", "none",
                     "--target", musl.triple(ARCHITECTURE), cwd=ROOT)
    expect(code == 0, tree)
    linked = {tuple(line.replace(" v", " ", 1).split()[:2]) for line in tree.splitlines() if line}
    linked = {package for package in linked if package[0] != "manypath-cli"}
    expect(len(linked) > 100 and linked <= set(licences), f"not in it: {sorted(linked - set(licences))[:10]}")
    return f"{len(licences)} packages, {len(linked)} of them linked"


def again(options, work):
    """The archive of the static program, packed a second time, has the same bytes."""
    made = single(options.files, f"manypath-*-{ARCHITECTURE}-linux.tar.gz")
    environment = os.environ | musl.environment(ARCHITECTURE, TARGET / "musl")
    words = ["static", "--no-build", "--profile", options.profile, "--out", work]
    code, told = run(BUILD, *words, env=environment, cwd=ROOT)
    expect(code == 0, told)
    first, second = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (made, work / made.name))
    expect(first == second, f"{first} and {second}")
    return first[:16]


# Installed in a bare Debian


def lines(title):
    """The commands that docs/install.md has below this heading."""
    text = PAGE.read_text()
    found = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##)", text, re.M | re.S)
    expect(found, f"{PAGE.name} has no heading {title}")
    block = re.findall(r"^    (\S.*)$", found[1], re.M)
    expect(block, f"{PAGE.name} has no commands for {title}")
    return block


def follow(root, options, title, *, network=False):
    """Runs these commands in a root to which the files of the release were downloaded."""
    if shutil.which("unshare") is None or os.geteuid() != 0:
        raise Missing("needs root")
    downloads = root / "root/downloads"
    shutil.copytree(options.files, downloads)
    # In a bare Debian root needs no sudo, and the reader says yes to apt.
    (root / "etc/apt/apt.conf.d/yes").write_text('APT::Get::Assume-Yes "true";\n')
    script = "set -e\ncd /root/downloads\n" + "\n".join(line.removeprefix("sudo ") for line in lines(title))
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                   "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    own = ["--mount", "--pid", "--fork", *([] if network else ["--net"])]
    code, told = run("unshare", *own, "chroot", root, "bash", "-c", script, env=environment)
    expect(code == 0, f"as {PAGE.name} says below {title}: exit code {code}\n{script}\n{told}")
    return told


def program(options, work):
    """The static program, unpacked in /usr/local."""
    root = options.roots.copy("program")
    told = follow(root, options, "Any Linux")
    expect("OK\n" in told and "\nmanypath " in told, told)
    # Not even the libraries that every Debian has.
    for library in [*root.glob("lib/*/libc.so*"), *root.glob("usr/lib/*/libc.so*"), *root.glob("usr/lib/*/ld-linux*")]:
        library.unlink(missing_ok=True)
    use(root, "--static")
    return "works without glibc"


def package(options, work):
    """The .deb, by apt."""
    root = options.roots.copy("package")
    # apt fetches what the package recommends.
    told = follow(root, options, "Debian and Ubuntu", network=True)
    expect("OK\n" in told and "\nmanypath " in told, told)
    use(root)
    return "works"


def python(options, work):
    """The wheel, in an environment of Debian's Python."""
    root = options.roots.copy("python")
    options.roots.install(root, "python3-venv")
    shutil.copy(ROOT / "examples/scenarios/two-paths.toml", root)
    told = follow(root, options, "Python")
    expect("OK\n" in told, told)
    found = next(path for path in root.glob("root/downloads/*/bin/python"))
    code, told = run("chroot", root, f"/{found.relative_to(root)}", "-c", SIMULATION)
    expect(code == 0, told)
    return told.strip()


# For another processor


def emulated(options, work):
    """The files for arm64: the program transfers a file in qemu, and the package has the same program."""
    emulator = shutil.which("qemu-aarch64-static")
    if emulator is None:
        raise Missing("qemu-aarch64-static is not installed: apt install qemu-user-static")
    archive = single(options.files, "manypath-*-aarch64-linux.tar.gz")
    shutil.unpack_archive(archive, work, filter="data")
    manypath = single(work, "manypath-*") / "bin/manypath"
    code, told = run(emulator, manypath, "--version")
    expect(code == 0 and "built for: aarch64-unknown-linux-musl" in told and " static" in told, told)
    packed = single(options.files, "manypath_*_arm64.deb")
    code, told = run("dpkg-deb", "-x", packed, work / "package")
    expect(code == 0, told)
    same = (work / "package/usr/bin/manypath").read_bytes() == manypath.read_bytes()
    expect(same, "the package has another program")
    expect(run("dpkg-deb", "-f", packed, "Architecture")[1] == "arm64\n", "the package is not for arm64")
    return transfer([emulator, manypath], work)


def transfer(command, work):
    """Sends a file over loopback."""
    source, place = work / "file", work / "received"
    source.write_bytes(os.urandom(1_000_000))
    words = [*command, "recv", "--json", "--once", "--listen", "127.0.0.1", "--port", "0", "--dir", place]
    place.mkdir()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as receiver:
        try:
            listening = json.loads(receiver.stdout.readline())
            code, told = run(*command, "send", "--json", source, listening["ticket"])
            expect(code == 0, told)
            expect(receiver.wait(60) == 0, "the receiver's exit code")
        finally:
            receiver.kill()
    expect((place / "file").read_bytes() == source.read_bytes(), "the file differs")
    return "1 MB sent and received"


ALWAYS = (arguments, folder, tools, steps, sums, sbom, again, program, package, python)
CASES = {case.__name__: case for case in (*ALWAYS, emulated)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, default=TARGET / "release-files", help="what packaging/release made")
    parser.add_argument("--profile", default="dist", help="that it was made with [default: dist]")
    add_require(parser)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all but emulated by default")
    options = parser.parse_args()
    unknown = set(options.cases) - set(CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    failed = False
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="release-", dir=TARGET) as top:
        options.roots = Roots(Path(top))
        for name in options.cases or [case.__name__ for case in ALWAYS]:
            begin = time.monotonic()
            work = Path(top) / f"work-{name}"
            work.mkdir()
            try:
                told, outcome = CASES[name](options, work), "ok    "
            except Missing as why:
                told, outcome, failed = str(why), "SKIPPED", failed or options.require
            except (Failed, RuntimeError, OSError, KeyError, ValueError, subprocess.SubprocessError) as why:
                told, outcome, failed = str(why), "FAILED", True
            print(f"{outcome} {name} ({time.monotonic() - begin:.0f} s): {told}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
