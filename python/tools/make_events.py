"""Writes manypath/_events.py, the classes of trace events, from docs/trace.schema.json.

    python3 python/tools/make_events.py            writes the file
    python3 python/tools/make_events.py --check    fails if the file is out of date
"""

from __future__ import annotations

import json
import keyword
import pathlib
import sys
import textwrap

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
SCHEMA = PACKAGE.parent / "docs" / "trace.schema.json"
TARGET = PACKAGE / "manypath" / "_events.py"

HEAD = '''"""Events of traces and chunks of packets. tools/make_events.py writes this file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at a host. Paths are counted from 1."""

    time_s: float
    """Seconds since the start of the run."""

    host: str
    """The host it happened at; of a dropped packet, the one that had sent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherEvent(Event):
    """An event of a later version of manypath."""

    event: str
    """Its name in the trace."""

    fields: dict[str, Any]
    """All else that the trace says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A chunk of a packet (RFC 9260)."""

    chunk: str
    """Its type as the RFC names it, such as DATA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherChunk(Chunk):
    """A chunk of a later version of manypath."""

    fields: dict[str, Any]
    """All else that the trace says."""
'''


def class_name(word: str) -> str:
    parts = word.replace("-", "_").split("_")
    return "".join(part[:1].upper() + part[1:].lower() for part in parts)


def attribute(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) else name


def kind(schema: dict) -> str:
    """The Python type of a value."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return "Chunk" if name == "ChunkSummary" else name
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(kind(option) for option in schema["anyOf"]))
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    names = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}
    found = []
    for name in types:
        if name == "array" and "prefixItems" in schema:
            found.append(f"tuple[{', '.join(kind(item) for item in schema['prefixItems'])}]")
        elif name == "array":
            found.append(f"list[{kind(schema['items'])}]")
        elif name == "object":
            found.append(f"dict[str, {kind(schema['additionalProperties'])}]")
        else:
            found.append(names[name])
    return " | ".join(found)


def documented(text: str, indent: str) -> list[str]:
    text = " ".join(text.replace("[`", "`").replace("`]", "`").split())
    lines = textwrap.wrap(text, 96 - len(indent))
    if len(lines) == 1:
        return [f'{indent}"""{lines[0]}"""']
    return [f'{indent}"""{lines[0]}', *(indent + line for line in lines[1:]), f'{indent}"""']


def write_class(entry: dict, tag: str, base: str, shared: dict) -> tuple[str, str, list[str]]:
    """The name in the trace, the name of the class, and its lines."""
    word = entry["properties"][tag]["const"]
    name = class_name(word) + ("Chunk" if base == "Chunk" else "")
    properties, required = dict(entry["properties"]), set(entry.get("required", []))
    if "$ref" in entry:
        part = shared[entry["$ref"].rsplit("/", 1)[1]]
        properties |= part["properties"]
        required |= set(part.get("required", []))
    properties.pop(tag)
    lines = ["@dataclass(frozen=True, slots=True, kw_only=True)", f"class {name}({base}):"]
    lines += documented(entry["description"], "    ")
    for field_name, schema in properties.items():
        of = kind(schema)
        default = ""
        if field_name not in required:
            if of == "bool":
                default = " = False"
            elif of.startswith("list"):
                default = " = field(default_factory=list)"
            else:
                default = f" = {schema['default']!r}" if "default" in schema else " = None"
                of = of if of.endswith("None") or schema.get("default") is not None else f"{of} | None"
        lines += ["", f"    {attribute(field_name)}: {of}{default}"]
        lines += documented(schema.get("description", field_name), "    ")
    return word, name, lines


def module() -> str:
    schema = json.loads(SCHEMA.read_text())
    shared = schema["$defs"]
    chunks = [write_class(entry, "chunk", "Chunk", shared) for entry in shared["ChunkSummary"]["oneOf"]]
    events = [write_class(entry, "event", "Event", shared) for entry in schema["oneOf"]]
    text = HEAD
    for _, _, lines in chunks + events:
        text += "\n\n" + "\n".join(lines) + "\n"
    for title, made in (("CHUNKS", chunks), ("EVENTS", events)):
        base = title[:-1].capitalize()
        text += f"\n\n{title}: dict[str, type[{base}]] = {{\n"
        text += "".join(f'    "{word}": {name},\n' for word, name, _ in made) + "}\n"
    names = ["Event", "OtherEvent", "Chunk", "OtherChunk"] + [name for _, name, _ in events + chunks]
    listed = "".join(f'    "{name}",\n' for name in sorted(names))
    return text + f"\n__all__ = [\n{listed}]\n"


def main() -> int:
    text = module()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text)
    elif TARGET.read_text() != text:
        print(f"{TARGET.name} is out of date: run python3 python/tools/make_events.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
