#!/usr/bin/env python3
"""Checks the links of all pages in Markdown, and the lists that must be complete.

    tests/prose/links.py                 checks the repository
    tests/prose/links.py --self-test     tests this script

- A relative link leads to a file of the repository, and its anchor to a heading there.
- docs/README.md links to every page of docs/, ARCHITECTURE.md to every folder of crates/, and
  tests/common/README.md to every folder of tests/.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Pages of the tests of other programs, and of folders that a program fills.
SKIPPED = ("tests/report/fixture/", "crates/lab/template/")
LISTS = {"docs/README.md": "docs/*.md", "ARCHITECTURE.md": "crates/*", "tests/common/README.md": "tests/*"}
LINK = re.compile(r"\]\(([^()\s]+)\)")
DEFINITION = re.compile(r"^\[[^\]]+\]:\s+(\S+)")
IMAGE = re.compile(r"""(?:src|srcset|href)=["']([^"']+)["']""")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
FENCE = re.compile(r"^\s*(```|~~~)")
EXTERNAL = re.compile(r"^[a-z][a-z0-9+.-]*:", re.I)


def prose_of(text):
    """Pairs of a line number and a line, without blocks of code."""
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        if FENCE.match(line):
            code = not code
        elif not code and not line.startswith("    "):
            yield number, line


def links_of(text):
    """Pairs of a line number and the target of a link."""
    for number, line in prose_of(text):
        line = re.sub(r"`[^`]*`", "`", line)
        for pattern in (LINK, DEFINITION, IMAGE):
            for match in pattern.finditer(line):
                yield number, match[1]


def anchors_of(text):
    """The anchors that GitHub gives to the headings of a page."""
    found = set()
    for _, line in prose_of(text):
        if not (heading := HEADING.match(line)):
            continue
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        same = sum(1 for anchor in found if re.fullmatch(re.escape(slug) + r"(-\d+)?", anchor))
        found.add(f"{slug}-{same}" if slug in found else slug)
    return found


def wrong_link(root, page, target):
    """Why a link of a page leads nowhere, or nothing."""
    if EXTERNAL.match(target):
        return None
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    if not path.is_relative_to(root):
        return "outside the repository"
    if not path.exists():
        return "no such file"
    if anchor and path.suffix == ".md" and anchor not in anchors_of(path.read_text(encoding="utf-8")):
        return "no such heading"
    return None


def missing(root):
    """Messages about lists that leave something out."""
    for name, pattern in LISTS.items():
        page = root / name
        targets = [target for _, target in links_of(page.read_text(encoding="utf-8"))]
        linked = {(page.parent / target.partition("#")[0]).resolve() for target in targets}
        for path in sorted(root.glob(pattern)):
            if path.resolve() not in linked and path != page:
                yield f"{name}: no link to {path.relative_to(root)}"


def pages(root):
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md"], text=True, capture_output=True
    )
    # Archives of the sources have no git.
    names = listed.stdout.split("\n") if listed.returncode == 0 else (
        path.relative_to(root).as_posix() for path in root.rglob("*.md") if "target" not in path.parts
    )
    return sorted(name for name in names if name and not name.startswith(SKIPPED) and (root / name).exists())


def check(root):
    """Messages, and how many links there are."""
    messages, count = [], 0
    for name in pages(root):
        page = root / name
        for number, target in links_of(page.read_text(encoding="utf-8")):
            count += 1
            if why := wrong_link(root, page, target):
                messages.append(f"{name}:{number}: {target}: {why}")
    return messages + list(missing(root)), count


def self_test():
    page = "# The `x` of [a](b.md), c\n\n## Two\n## Two\n```sh\n# no [heading](none.md)\n```\n"
    assert anchors_of(page) == {"the-x-of-a-c", "two", "two-1"}, anchors_of(page)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for made in ("docs", "crates/a", "crates/b", "tests/common", "tests/c"):
            (root / made).mkdir(parents=True)
        (root / "docs/README.md").write_text("[a](a.md) [up](../../etc/passwd)\n")
        (root / "tests/common/README.md").write_text("[common](.)\n")
        (root / "docs/a.md").write_text(page.replace("b.md", "#two-1"))
        (root / "docs/b.md").write_text("[![x](a.svg)](a.md#two) <img src=\"b.svg\"> [web](https://example.org)\n`[code](c)`\n")
        (root / "ARCHITECTURE.md").write_text("[a](crates/a)\n\n[c]: docs/a.md#three\n")
        messages, count = check(root)
        assert messages == [
            "ARCHITECTURE.md:3: docs/a.md#three: no such heading",
            "docs/README.md:1: ../../etc/passwd: outside the repository",
            "docs/b.md:1: a.svg: no such file",
            "docs/b.md:1: b.svg: no such file",
            "docs/README.md: no link to docs/b.md",
            "ARCHITECTURE.md: no link to crates/b",
            "tests/common/README.md: no link to tests/c",
        ], messages
        assert count == 10, count
    print("self-test: passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    if parser.parse_args().self_test:
        return self_test()
    messages, count = check(ROOT)
    for message in messages:
        print(message, file=sys.stderr)
    if messages:
        sys.exit(1)
    print(f"links: {count} lead somewhere")
    return None


if __name__ == "__main__":
    main()
