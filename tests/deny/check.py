#!/usr/bin/env python3
"""Holds the packages we depend on against deny.toml: licences, sources, bans, and known vulnerabilities.

    tests/deny/check.py [--advisories DIR]

Does what we need of cargo-deny in a second and without installing it, which takes minutes on a cold machine.
Advisories need a clone of the database: DIR, or one in target/ that is fetched when it is older than a day.
Where it cannot be had, that check is skipped, loudly; the others run.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The fuzz targets are a workspace of their own.
MANIFESTS = [ROOT / "Cargo.toml", ROOT / "fuzz" / "Cargo.toml"]
DATABASE = ROOT / "target" / "advisory-db"
DAY_S = 24 * 3600
FETCH_TIME_MAX_S = 60


def packages():
    """All packages of all workspaces, by name and version."""
    found = {}
    for manifest in MANIFESTS:
        command = ["cargo", "metadata", "--format-version", "1", "--manifest-path", str(manifest)]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        for package in json.loads(out)["packages"]:
            found[package["name"], package["version"]] = package
    return list(found.values())


def permits(expression, allowed):
    """Whether an SPDX expression can be fulfilled with licences that are allowed."""
    # Before SPDX, cargo took a slash for "or".
    tokens = re.findall(r"\(|\)|[^\s()/]+|/", expression)
    tokens = ["OR" if token == "/" else token for token in tokens]

    def term():
        token = tokens.pop(0)
        if token == "(":
            value = either()
            tokens.pop(0)
            return value
        if tokens and tokens[0] == "WITH":
            tokens.pop(0)
            token = f"{token} WITH {tokens.pop(0)}"
        return token in allowed

    def both():
        value = term()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            value = term() and value
        return value

    def either():
        value = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            value = both() or value
        return value

    return either()


def number(version):
    """A version that compares: three numbers; a pre-release comes before its release."""
    core, _, pre = version.split("+")[0].partition("-")
    numbers = [int(part) for part in core.split(".")]
    # Parts of a pre-release: numbers before words.
    key = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split(".")] if pre else [(2, 0, "")]
    return numbers + [0] * (3 - len(numbers)), key


def matches(version, requirement):
    """Whether a version fulfils a requirement such as ">= 1.2.3, < 2.0" or "^0.4.1"."""
    for part in requirement.split(","):
        operator, wanted = re.fullmatch(r"\s*(>=|<=|>|<|=|\^|~)?\s*(\S+)\s*", part).groups()
        if wanted == "*":
            continue
        have, want = number(version), number(wanted)
        given = wanted.split("-")[0].count(".") + 1
        if operator in (None, "^", "~"):
            # What stays the same: up to the first number that is not 0, or of "~" all but the last.
            core = want[0]
            first = next((i for i, n in enumerate(core) if n), 2)
            same = min(first, given - 1) + 1 if operator != "~" else min(max(given - 1, 1), 2)
            fits = have >= want and have[0][:same] == core[:same]
        elif operator == "=":
            fits = have[0][:given] == want[0][:given] and (given < 3 or have == want)
        else:
            fits = {">=": have >= want, "<=": have <= want, ">": have > want, "<": have < want}[operator]
        if not fits:
            return False
    return True


def check_packages(rules, found):
    """Problems with licences, sources and bans."""
    allowed = set(rules["licenses"]["allow"])
    registries = {f"registry+{url}" for url in rules["sources"]["allow-registry"]}
    banned = {ban["crate"] for ban in rules["bans"]["deny"]}
    for package in found:
        name = f"{package['name']} {package['version']}"
        licence = package["license"]
        if not licence or not permits(licence, allowed):
            yield f"{name}: the licence {licence or '(none)'} is not among those allowed"
        if package["source"] is None:
            if not pathlib.Path(package["manifest_path"]).is_relative_to(ROOT):
                yield f"{name}: a path outside the repository"
            for dependency in package["dependencies"]:
                if dependency["req"] == "*" and not dependency.get("path"):
                    yield f"{name}: any version of {dependency['name']} will do"
        elif package["source"] not in registries:
            yield f"{name}: from {package['source']}"
        if package["name"] in banned:
            yield f"{name}: banned"


def database(given):
    """The directory of the advisories, or why there is none."""
    if given:
        return pathlib.Path(given), None
    stamp = DATABASE / ".git" / "FETCH_HEAD"
    if stamp.exists() and time.time() - stamp.stat().st_mtime < DAY_S:
        return DATABASE, None
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    url = rules["advisories"]["db-urls"][0]
    fresh = ["git", "clone", "--quiet", "--depth", "1", url, str(DATABASE)]
    again = ["git", "-C", str(DATABASE), "pull", "--quiet", "--depth", "1", "--rebase"]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        command = again if DATABASE.exists() else fresh
        subprocess.run(command, check=True, timeout=FETCH_TIME_MAX_S, env=environment, capture_output=True)
        stamp.touch()
        return DATABASE, None
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error).encode()
        return None, said.decode(errors="replace").strip().splitlines()[-1]


def advisories(directory):
    """All advisories, withdrawn ones left out."""
    for path in sorted(directory.glob("crates/*/RUSTSEC-*.md")):
        match = re.match(r"```toml\n(.*?)\n```", path.read_text(), re.DOTALL)
        advisory = tomllib.loads(match.group(1))
        if "withdrawn" not in advisory["advisory"]:
            yield advisory


def check_advisories(rules, found, directory):
    """Problems with advisories, and how many advisories there are."""
    ignored = {entry if isinstance(entry, str) else entry["id"] for entry in rules["advisories"]["ignore"]}
    versions = {}
    for package in found:
        if package["source"]:
            versions.setdefault(package["name"], []).append(package["version"])
    problems, count = [], 0
    for entry in advisories(directory):
        count += 1
        about, safe = entry["advisory"], entry.get("versions", {})
        if about["id"] in ignored:
            continue
        safe = safe.get("patched", []) + safe.get("unaffected", [])
        for version in versions.get(about["package"], []):
            if not any(matches(version, requirement) for requirement in safe):
                kind = about.get("informational", "vulnerability")
                problems.append(f"{about['package']} {version}: {about['id']} ({kind})")
    return problems, count


def self_test():
    """Each rule finds what breaks it."""
    assert permits("MIT OR GPL-3.0", {"MIT"}) and permits("MIT/Apache-2.0", {"Apache-2.0"})
    assert not permits("MIT AND GPL-3.0", {"MIT"}) and not permits("GPL-3.0", {"MIT"})
    assert permits("(MIT OR GPL-3.0) AND Zlib", {"MIT", "Zlib"})
    assert not permits("(MIT OR GPL-3.0) AND Zlib", {"MIT"})
    assert permits("Apache-2.0 WITH LLVM-exception", {"Apache-2.0 WITH LLVM-exception"})
    for version, requirement, expected in [
        ("1.2.3", ">= 1.2.3", True), ("1.2.2", ">= 1.2.3", False), ("2.0.0", ">= 1.2, < 2.0", False),
        ("1.9.0", "^1.2", True), ("2.0.0", "^1.2", False), ("0.4.2", "^0.4.1", True), ("0.5.0", "^0.4.1", False),
        ("1.2.9", "~1.2.3", True), ("1.3.0", "~1.2.3", False), ("1.0.0-rc.1", ">= 1.0.0", False),
        ("1.0.0-rc.2", "> 1.0.0-rc.1", True), ("0.9.0", "< 1", True), ("1.2.3", "= 1.2.3", True), ("5.0.0", "*", True),
    ]:
        assert matches(version, requirement) == expected, (version, requirement)
    rules = {"licenses": {"allow": ["MIT"]}, "sources": {"allow-registry": ["https://r"]}, "bans": {"deny": [{"crate": "bad"}]}}
    package = {"name": "x", "version": "1.0.0", "license": "MIT", "source": "registry+https://r", "dependencies": []}
    problems = lambda **change: list(check_packages(rules, [{**package, **change}]))
    assert problems() == []
    for change in [{"license": "GPL-3.0"}, {"license": None}, {"source": "git+https://r"}, {"name": "bad"}]:
        assert len(problems(**change)) == 1, change


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--advisories", metavar="DIR", default=os.environ.get("MANYPATH_ADVISORY_DB"))
    options = parser.parse_args()
    self_test()
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    found = packages()
    problems = list(check_packages(rules, found))
    print(f"licences, sources, bans: {len(found)} packages, {len(problems)} problems")
    directory, why = database(options.advisories)
    if directory:
        known, count = check_advisories(rules, found, directory)
        if not count:
            problems.append(f"{directory} holds no advisories")
        problems += known
        print(f"advisories: {count} looked at, {len(known)} concern us")
    else:
        print(f"SKIPPED: advisories; their database cannot be had: {why}", file=sys.stderr)
    for problem in problems:
        print(f"deny: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
