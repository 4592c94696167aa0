#!/usr/bin/env python3
"""Tests what packages are made of: seconds only. `tests/packaging/installs.py` installs them.

    tests/packaging/run.py --binary target/checks/manypath [--require] [CASE...]

--require fails instead of skipping what needs a program that is not installed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from failure import Failed, Unavailable, expect  # noqa: E402
from requirements import add_binary, add_require  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "packaging/systemd").iterdir())
CRATE = ROOT / "crates/cli"
# What `systemd-analyze security` may say of a unit, from 0 to 10.
EXPOSURE_MAX = 3.0


def run(*command, cwd=None, env=None, check=True, text=None):
    """What a command prints on both outputs; it must succeed unless `check` is off."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=env, input=text, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def need(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise Unavailable(f"not installed: {', '.join(missing)}")


# The commit in --version


class Sources:
    """Copies of what the build script looks at, and what it says there."""

    def __init__(self, work):
        self.work, self.script = work, work / "build-script"
        run("rustc", "--edition", "2024", "-o", self.script, CRATE / "build.rs")

    def tree(self, name):
        crate = self.work / name / "crates/cli"
        (crate / "src").mkdir(parents=True)
        (crate / "src/main.rs").write_text("fn main() {}\n")
        (crate / "Cargo.toml").write_text("[package]\n")
        (self.work / name / "Cargo.toml").write_text("[workspace]\n")
        return crate

    def git(self, crate, *words, top="../.."):
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        return run("git", "-c", "user.name=a", "-c", "user.email=a@example", "-C", crate / top, *words, env=environment)

    def says(self, crate, **more):
        """The commit, and the files that are watched."""
        environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        environment |= {"CARGO_MANIFEST_DIR": str(crate), "PROFILE": "release", "TARGET": "t", **more}
        said = run(self.script, env=environment)
        commit = re.search(r"^cargo::rustc-env=MANYPATH_COMMIT=(.*)$", said, re.M)
        expect(commit, said)
        return commit[1], re.findall(r"^cargo::rerun-if-changed=(.*)$", said, re.M)


def commit(_options, work):
    """The build script names the right commit, in all kinds of trees, or none."""
    need("git", "rustc")
    sources = Sources(work)
    crate = sources.tree("archive")
    expect(sources.says(crate)[0] == "unknown", "an archive has no commit")
    expect(sources.says(crate, MANYPATH_COMMIT="v1-2-gabc\n")[0] == "v1-2-gabc", "the variable names it")
    expect(sources.says(crate, MANYPATH_COMMIT="two words")[0] == "unknown", "a variable that is no word")
    digits = "0123456789abcdef0123456789abcdef01234567"
    (crate / ".cargo_vcs_info.json").write_text('{\n  "git": {\n    "sha1": "%s"\n  },\n "path_in_vcs": ""}' % digits)
    expect(sources.says(crate)[0] == digits[:12], "a crate from a registry knows its commit")

    crate = sources.tree("clone")
    sources.git(crate, "init", "-q")
    expect(sources.says(crate)[0] == "unknown", "a repository that does not have the crate")
    sources.git(crate, "add", "-A")
    sources.git(crate, "commit", "-q", "-m", "one")
    head = sources.git(crate, "rev-parse", "--short=12", "HEAD").strip()
    named, watched = sources.says(crate)
    expect(named == head, f"{named} in place of {head}")
    for path in (".git/HEAD", ".git/refs/heads", "crates/cli/src", "Cargo.toml"):
        found = any(Path(name).is_absolute() and Path(name).samefile(crate / "../.." / path) for name in watched)
        expect(found, f"{path} is not watched: {watched}")
    expect(all(Path(name).exists() or name == "build.rs" for name in watched), "what is not there is watched")
    expect(sources.says(crate, PROFILE="debug")[0].startswith("not looked up"), "a debug build looks nothing up")
    (crate / "../../README.md").write_text("no part of the program\n")
    expect(sources.says(crate)[0] == head, "a file that is no part of it counts")
    (crate / "src/main.rs").write_text("fn main() { }\n")
    expect(sources.says(crate)[0] == f"{head}, changed since", "a change is not seen")

    # The sources of a release, unpacked within another repository, ignored or even kept there.
    outer = sources.tree("outer")
    sources.git(outer, "init", "-q")
    crate = sources.tree("outer/vendor/manypath")
    sources.git(outer, "add", "-A")
    sources.git(outer, "commit", "-q", "-m", "all")
    expect(sources.says(crate)[0] == "unknown", "the commit of another repository is named")
    return "in a clone, an archive, a crate and another repository"


def version(options, _work):
    """-V is short; --version names the commit of this repository."""
    short = run(options.binary, "-V")
    expect(re.fullmatch(r"manypath \d+\.\d+\.\d+\n", short), short)
    said = run(options.binary, "--version")
    expect(said.startswith(short), said)
    head = run("git", "rev-parse", "--short=12", "HEAD", cwd=ROOT, check=False).strip()
    if re.fullmatch(r"[0-9a-f]{12}", head):
        expect(f"\ncommit: {head}" in said, f"{head} is not in {said}")
    for key in ("built for", "features", "protocols"):
        expect(re.search(rf"^{key}: \S", said, re.M), f"no {key} in {said}")
    return said.splitlines()[1]


# Units


def units(_options, work):
    """systemd takes the units as they are, and finds little to attack."""
    need("systemd-analyze")
    exposures = []
    for unit in UNITS:
        # The program need not be installed.
        copy = work / unit.name
        copy.write_text(re.sub(r"^ExecStart=manypath ", "ExecStart=true ", unit.read_text(), flags=re.M))
        said = run("systemd-analyze", "verify", "--man=no", copy)
        expect(said == "", f"{unit.name}: {said}")
        said = run("systemd-analyze", "security", "--offline=true", "--no-pager", copy, check=False)
        exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
        expect(exposure, f"{unit.name}: {said}")
        expect(float(exposure[1]) < EXPOSURE_MAX, f"{unit.name}: {exposure[0]}")
        exposures.append(f"{unit.stem} {exposure[1]}")
    return ", ".join(exposures)


def commands(options, _work):
    """The command lines of the units are commands that there are."""
    for unit in UNITS:
        words = re.search(r"^ExecStart=manypath (.*)$", unit.read_text(), re.M)[1].split()
        command = [word for word in words if re.fullmatch(r"[a-z]+", word)]
        said = run(options.binary, *command, "--help")
        for option in (word for word in words if word.startswith("--")):
            expect(re.search(rf"^\s+{option}\b", said, re.M), f"{unit.name}: no {option} in {' '.join(command)}")
    for name in ("relay.conf", "proxy-listen.conf"):
        text = (ROOT / "packaging/etc" / name).read_text()
        command = re.search(r"`manypath ([a-z ]+) --help`", text)[1].split()
        said = run(options.binary, *command, "--help")
        for option in re.findall(r"--[a-z-]+", re.search(r"^#OPTIONS=(.*)$", text, re.M)[1]):
            expect(re.search(rf"^\s+{option}\b", said, re.M), f"{name}: no {option}")
        expect(any(f"EnvironmentFile=-/etc/manypath/{name}\n" in unit.read_text() for unit in UNITS), name)
    return f"{len(UNITS)} units"


# Manual page and completions


def manual(options, work):
    """The manual page is right roff, and shows the examples as they are."""
    need("mandoc")
    page = work / "manypath.1"
    page.write_text(run(options.binary, "man"))
    expect(run(options.binary, "man") == page.read_text(), "the page differs from run to run")
    said = run("mandoc", "-T", "lint", "-W", "warning", page, check=False).splitlines()
    # It is made with each build, so a date would say nothing.
    said = [line for line in said if "missing date" not in line]
    expect(not said, "\n".join(said[:10]))
    text = run("mandoc", "-T", "ascii", "-O", "width=100", page)
    text = re.sub(r".\x08", "", text)
    for line in ("manypath demo --size 20MB --down 2s --for 2s", "MANYPATH PROXY CONNECT",
                 "--deny-target 'this-host:*'", "3  a transfer was interrupted"):
        expect(line in text, f"{line!r} is not shown")
    if shutil.which("groff"):
        said = run("groff", "-man", "-Tutf8", "-ww", "-z", page)
        # Lines that are shown as they are may be long.
        said = [line for line in said.splitlines() if not re.search(r"cannot (adjust|break) line", line)]
        expect(not said, "\n".join(said[:10]))
    return f"{len(text.splitlines())} lines"


COMPLETE = """
set -u
source "$1"
complete -p manypath >/dev/null || exit 1
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMPREPLY=()
_manypath manypath "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completions(options, work):
    """bash completes commands and options; the other shells can read their scripts."""
    script = work / "manypath.bash"
    script.write_text(run(options.binary, "completions", "bash"))

    def complete(*words):
        return run("bash", "--norc", "-c", COMPLETE, "bash", script, "manypath", *words).split()

    expect(complete("se") == ["send"], "manypath se")
    expect(complete("proxy", "con") == ["connect"], "manypath proxy con")
    expect("--bind" in complete("send", "--b"), "manypath send --b")
    tested = ["bash"]
    for shell in ("zsh", "fish"):
        text = run(options.binary, "completions", shell)
        expect(len(text) > 10_000, shell)
        if shutil.which(shell):
            run(shell, "-n", text=text)
            tested.append(shell)
    return ", ".join(tested)


# Files


def built_by_script():
    """The files that `packaging/build` has the program write for the package."""
    text = (ROOT / "packaging/build").read_text()
    describe = text[text.index("\ndescribe() {"):]
    return set(re.findall(r'>"\$2/(\S+)"', describe[:describe.index("\n}")]))


def files(_options, work):
    """All that the package lists is there, all units are in it, and a package that was made is complete."""
    table = tomllib.loads((CRATE / "Cargo.toml").read_text())["package"]["metadata"]["deb"]
    expected, made = set(), built_by_script()
    for source, to, _mode in table["assets"]:
        if source.startswith("target/release/"):
            name = source.removeprefix("target/release/")
            expect(name == "manypath" or name.removeprefix("packaging/") in made, f"nobody makes {source}")
            sources = [Path(name).name]
        else:
            sources = [path.name for path in CRATE.glob(source)]
            expect(sources, f"nothing is {source}")
        expected |= {to + name if to.endswith("/") else to for name in sources}
    for unit in table["systemd-units"]:
        found = CRATE / unit["unit-scripts"] / f"{unit['unit-name']}.service"
        expect(found.is_file(), f"no {found}")
        expected.add(f"usr/lib/systemd/system/{found.name}")
    for unit in UNITS:
        expect(f"usr/lib/systemd/system/{unit.name}" in expected, f"{unit.name} is not in the package")
    for script in (ROOT / "packaging/debian").glob("p*"):
        expect("\n#DEBHELPER#\n" in script.read_text(), f"cargo-deb adds nothing to {script.name}")
        run("sh", "-n", script)
    run("bash", "-n", ROOT / "packaging/build")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    packages = sorted((target / "packages").glob("manypath_*.deb"), key=lambda path: path.stat().st_mtime)
    if not packages:
        return f"{len(expected)} files; no package was made"
    sources = [CRATE / "Cargo.toml", *(ROOT / "packaging").rglob("*"), *(ROOT / "docs").iterdir()]
    if packages[-1].stat().st_mtime < max(path.stat().st_mtime for path in sources):
        return f"{len(expected)} files; {packages[-1].name} is older than they are"
    held(packages[-1], expected, work)
    return f"{len(expected)} files, as in {packages[-1].name}"


def held(package, expected, work):
    """The package holds these files, and no others; those in /etc are configuration."""
    run("dpkg-deb", "-R", package, work / "package")
    top = work / "package"
    there = {str(path.relative_to(top)).removesuffix(".gz") for path in top.rglob("*") if path.is_file()}
    there = {name for name in there if not name.startswith("DEBIAN/")}
    expect(there == expected, f"missing: {sorted(expected - there)}; too many: {sorted(there - expected)}")
    configuration = set((top / "DEBIAN/conffiles").read_text().split())
    expect(configuration == {f"/{name}" for name in expected if name.startswith("etc/")}, str(configuration))
    for script in ("postinst", "prerm", "postrm"):
        text = (top / "DEBIAN" / script).read_text()
        expect("#DEBHELPER#" not in text and "manypath-relay.service" in text, f"{script}: {text}")


CASES = {case.__name__: case for case in (commit, version, units, commands, manual, completions, files)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser)
    add_require(parser)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all by default")
    options = parser.parse_args()
    unknown = set(options.cases) - set(CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    failed = False
    for name in options.cases or CASES:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="manypath-packaging-") as work:
            try:
                told, outcome = CASES[name](options, Path(work)), "ok    "
            except Unavailable as why:
                told, outcome, failed = str(why), "SKIPPED", failed or options.require
            except Failed as why:
                told, outcome, failed = str(why), "FAILED", True
        print(f"{outcome} {name} ({time.monotonic() - begin:.1f} s): {told}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
