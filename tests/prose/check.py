#!/usr/bin/env python3
"""Checks the rules for English and for the form of code in CONTRIBUTING.md that a machine can check.

    tests/prose/check.py                 checks the repository
    tests/prose/check.py --list CRATE    lists the violations of a crate, or of all with "all"
    tests/prose/check.py --wrap FILE...  wraps comment lines above 100 columns
    tests/prose/check.py --lower         lowers the allowances to what is left
    tests/prose/check.py --self-test     tests this script

- Comment lines of Rust files have at most 100 columns.
- Doc comments do not open with the words of OPENINGS; comments and pages do not contain those of WORDS.
- Commit subjects have at most 72 characters: since the last tag, or since this script exists if that is later.
- They read `area: verb object`, all that came after the last one that did not.
- Parameters are not tuples taken apart (`tuple`), and filters do not ask a flag (`flag`): `if` does.

allowance.json has the number of old violations for each crate. It may only fall: more are an error.
"""

import argparse
import functools
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALLOWANCE = Path(__file__).with_name("allowance.json")
COLUMNS = 100
SUBJECT = 72
FORM = re.compile(r"[a-z0-9][a-z0-9./_-]*: [a-z]")
# The last commit whose subject has another form.
FORMLESS = "31c6b335fe68"
OPENINGS = re.compile(r"(what|whether|so many)\b", re.I)
WORDS = re.compile(r"\b(so many|anew|likewise)\b", re.I)
PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md"]
COMMENT = re.compile(r"^(\s*)(///|//!|//)( ?)(.*)$")
# A parameter that is a tuple taken apart; a filter that looks at nothing that it filters.
TUPLE = re.compile(r"(^\s*|\bfn \w+.*[(,] ?)\((?:\w+, )+\w+\): \(")
FLAG = re.compile(r"\.filter\(\|_\|")
# A comment behind code: not in a text, which may have "//" in an address.
TRAILING = re.compile(r'^[^"]*?[;,{})\w]\s+(//\s.*)$')


def violations_of_source(text):
    """Pairs of a line number and a kind for a Rust file."""
    before = None
    for number, line in enumerate(text.split("\n"), 1):
        comment = COMMENT.match(line)
        marker = comment[2] if comment else None
        if comment:
            if len(line) > COLUMNS:
                yield number, "long"
            if marker != "//" and marker != before and OPENINGS.match(comment[4]):
                yield number, "opening"
            elif WORDS.search(comment[4]):
                yield number, "word"
        else:
            if (trailing := TRAILING.match(line)) and WORDS.search(trailing[1]):
                yield number, "word"
            if TUPLE.search(line):
                yield number, "tuple"
            if FLAG.search(line):
                yield number, "flag"
        before = marker


def violations_of_page(text):
    """The same for a page in Markdown: words only, and none in quotation marks, as in lists of examples."""
    for number, line in enumerate(text.split("\n"), 1):
        if WORDS.search(re.sub(r'"[^"]*"', "", line)):
            yield number, "word"


def crate_of(path):
    parts = path.split("/")
    if path.endswith(".md"):
        return "pages"
    return "/".join(parts[:2]) if parts[0] == "crates" else parts[0]


def files(root):
    """All files to check, relative to the root."""
    skipped = {"target", ".git"}
    for path in sorted(root.rglob("*.rs")):
        name = path.relative_to(root)
        if not skipped.intersection(name.parts):
            yield name.as_posix()
    for pattern in PAGES:
        for path in sorted(root.glob(pattern)):
            yield path.relative_to(root).as_posix()


def violations(root):
    for name in files(root):
        text = (root / name).read_text(encoding="utf-8")
        of = violations_of_page if name.endswith(".md") else violations_of_source
        for number, kind in of(text):
            yield crate_of(name), kind, f"{name}:{number}"


def compare(counted, allowed):
    """Messages about crates with more violations than allowed, and about those that could allow fewer."""
    worse, better = [], []
    for key in sorted(set(counted) | set(allowed)):
        now, limit = counted.get(key, 0), allowed.get(key, 0)
        if now > limit:
            worse.append((key, now, limit))
        elif now < limit:
            better.append((key, now, limit))
    return worse, better


def read_allowance():
    table = json.loads(ALLOWANCE.read_text())
    return {(crate, kind): n for crate, kinds in table.items() for kind, n in kinds.items()}


def write_allowance(counts):
    table = {}
    for (crate, kind), n in sorted(counts.items()):
        if n:
            table.setdefault(crate, {})[kind] = n
    ALLOWANCE.write_text(json.dumps(table, indent=2) + "\n")


# Wrapping


def words_of(text):
    """Words, with code in backticks and links kept whole."""
    return re.findall(r"(?:`[^`]*`|\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])?|[^\s`\[]|[`\[])+", text)


def starts_block(text):
    """Whether a line of a comment cannot continue the line before."""
    return bool(re.match(r"(\s*([-*+]|\d+[.)])\s|\s*\||#|\s*```|    |\[[^\]]*\]: |$)", text))


def is_alone(text):
    """Whether a line of a comment is no part of a paragraph: empty, code, of a table, a heading."""
    return not text or text.startswith(("    ", "#")) or text.lstrip().startswith("|")


def wrap_paragraph(indent, marker, lines):
    first = re.match(r"\s*(([-*+]|\d+[.)])\s+)?", lines[0])[0]
    hanging = " " * len(first)
    done, current = [], first
    empty = True
    for word in words_of(" ".join(line.strip() for line in lines)[len(first.strip()):]):
        candidate = current + ("" if empty else " ") + word
        if not empty and len(f"{indent}{marker} {candidate}") > COLUMNS:
            done.append(current)
            current, empty = hanging + word, False
        else:
            current, empty = candidate, False
    done.append(current)
    return [f"{indent}{marker} {line}".rstrip() for line in done]


def wrapped(text):
    """The text of a Rust file with paragraphs of comments wrapped that have a line above 100 columns."""
    result, paragraph, head, code = [], [], None, False

    def flush():
        nonlocal paragraph
        if paragraph:
            originals, texts = zip(*paragraph)
            if any(len(line) > COLUMNS for line in originals):
                result.extend(wrap_paragraph(*head, texts))
            else:
                result.extend(originals)
        paragraph = []

    for line in text.split("\n"):
        comment = COMMENT.match(line)
        if not comment:
            flush()
            code = False
            result.append(line)
            continue
        here, content = (comment[1], comment[2]), comment[4]
        if here != head:
            flush()
            code = False
        fence = content.strip().startswith("```")
        if fence or code or starts_block(content) or not comment[3]:
            flush()
            code = code != fence
        head = here
        if fence or code or not comment[3] or is_alone(content):
            result.append(line)
        else:
            paragraph.append((line, content))
    flush()
    return "\n".join(result)


# Commits


def git(root, *arguments):
    done = subprocess.run(["git", "-C", root, *arguments], text=True, capture_output=True)
    return done.stdout.strip() if done.returncode == 0 else None


def bad_subjects(root):
    """Commit subjects that break the rules, each with what is wrong, and why nothing was checked if that is so."""
    script = Path(__file__).resolve().relative_to(ROOT).as_posix()
    if git(root, "rev-parse", "--git-dir") is None:
        return [], "no git history"
    if git(root, "rev-parse", "--is-shallow-repository") == "true":
        return [], "a shallow clone has no history"
    added = git(root, "log", "--diff-filter=A", "--format=%H", "--", script)
    if not added:
        return [], "the history does not contain this script"
    # The commit that added it follows the rule, too.
    bounds = [f"^{commit}" for commit in (git(root, "rev-parse", f"{added.split()[-1]}^"),) if commit]
    tag = git(root, "describe", "--tags", "--abbrev=0")
    bounds += [f"^{tag}"] if tag else []
    log = functools.partial(git, root, "log", "--no-merges", "--format=%h %s", "HEAD", *bounds)
    long = [line for line in (log() or "").split("\n") if len(line.partition(" ")[2]) > SUBJECT]
    formless = [line for line in (log(f"^{FORMLESS}") or "").split("\n") if line and not FORM.match(line.partition(" ")[2])]
    wrong = [f"above {SUBJECT} characters: {line}" for line in long]
    return wrong + [f"not `area: verb object`: {line}" for line in formless], None


def self_test():
    long = "/// " + "word " * 25
    source = "\n".join([
        "/// What it is.",           # opening
        "/// What goes on a second line is no opening.",
        "fn a() {}",
        "/// Whether it is.",        # opening
        "//! So many.",              # opening
        "// What a plain comment says.",
        "// likewise",               # word
        "let x = 1; // made anew",   # word
        'let y = "http://a likewise";',
        long,                        # long
        "fn a((b, c): (u8, u8)) {}", # tuple
        "    (b, c): (u8, u8),",     # tuple
        "let (b, c): (u8, u8) = d;",
        "x.filter(|_| is_on);",      # flag
    ])
    kinds = [kind for _, kind in violations_of_source(source)]
    assert kinds == ["opening", "opening", "opening", "word", "word", "long", "tuple", "tuple", "flag"], kinds
    assert len(list(violations_of_page('it is "so many" here\nand so many there'))) == 1
    assert compare({"a": 2, "b": 1}, {"a": 1, "b": 2, "c": 1}) == ([("a", 2, 1)], [("b", 1, 2), ("c", 0, 1)])
    once = wrapped(long + "\n/// more\n///\n/// - `" + "x" * 60 + " y` and " + "item " * 15 + "\nfn a() {}\n")
    assert wrapped(once) == once
    assert max(map(len, once.split("\n"))) <= COLUMNS, once
    assert once.count("word") == 25 and "///   item" in once and once.endswith("\nfn a() {}\n"), once
    heading = wrapped("/// # Errors\n" + long + "\n").split("\n")
    assert heading[0] == "/// # Errors" and max(map(len, heading)) <= COLUMNS, heading
    untouched = "/// ```\n/// " + "c " * 60 + "\n/// ```\n/// | " + "t " * 60 + "|\n    x // " + "y " * 60 + "\n"
    assert wrapped(untouched) == untouched
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "crates/a/src").mkdir(parents=True)
        (root / "crates/a/src/lib.rs").write_text("//! What it is.\n")
        (root / "README.md").write_text("done anew\n")
        found = [(crate, kind) for crate, kind, _ in violations(root)]
        assert found == [("crates/a", "opening"), ("pages", "word")], found
        assert bad_subjects(root) == ([], "no git history")
    for subject, is_good in (("lab: judge by intervals", True), ("proto/rack: find losses", True), ("lab, sim: judge", False), ("Judge by intervals", False),
                             ("lab: Judge", False)):
        assert bool(FORM.match(subject)) == is_good, subject
    print("self-test: passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", metavar="CRATE")
    parser.add_argument("--wrap", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--lower", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if args.wrap:
        for path in args.wrap:
            text = path.read_text(encoding="utf-8")
            if (new := wrapped(text)) != text:
                path.write_text(new, encoding="utf-8")
        return None
    found = list(violations(ROOT))
    counted = Counter((crate, kind) for crate, kind, _ in found)
    if args.list:
        for crate, kind, place in found:
            if args.list in ("all", crate):
                print(f"{place}: {kind}")
        return None
    allowed = read_allowance()
    if args.lower:
        write_allowance({key: min(n, counted.get(key, 0)) for key, n in allowed.items()})
        return None
    worse, better = compare(counted, allowed)
    for (crate, kind), now, limit in worse:
        print(f"{crate}: {now} violations of kind '{kind}', {limit} allowed; "
              f"tests/prose/check.py --list {crate} names them", file=sys.stderr)
    if better:
        print(f"prose: {len(better)} allowances can be lowered: tests/prose/check.py --lower")
    subjects, skipped = bad_subjects(ROOT)
    if skipped:
        print(f"SKIPPED: commit subjects: {skipped}")
    for line in subjects:
        print(f"commit subject {line}", file=sys.stderr)
    if worse or subjects:
        sys.exit(1)
    print(f"prose: {sum(counted.values())} old violations, none new")
    return None


if __name__ == "__main__":
    main()
