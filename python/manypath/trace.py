"""Traces: what happened in a run, event by event.

    >>> from manypath import trace
    >>> for event in trace.read("events.jsonl"):
    ...     if isinstance(event, trace.PathState):
    ...         print(event.time_s, event.host, event.path, event.to)

docs/trace.md describes the format. Each kind of event is a class with its fields; their names end
with their unit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from . import _events
from ._errors import WrittenError
from ._events import *
from ._events import CHUNKS, EVENTS

__all__ = ["TraceError", "read", "read_lines"]
__all__ += _events.__all__


class TraceError(WrittenError):
    """A file that is no trace; `line` says where."""


def read(path: str | os.PathLike[str]) -> Iterator[Event]:
    """The events of a file of JSON lines, as ``manypath sim run --trace`` writes it, in order.

    The file is read as far as the events are taken. Raises TraceError at a line that is no event,
    and OSError if the file cannot be read.
    """
    with open(path, encoding="utf-8") as file:
        yield from read_lines(file, os.fspath(path))


def read_lines(lines: Iterable[str], name: str = "trace") -> Iterator[Event]:
    """The events of lines of JSON. `name` is what errors call them."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            yield _event(record)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            what = f"not a record of a trace: {error}"
            remedy = "each line is one JSON object with time_s, host and event"
            raise TraceError(name, number, what, remedy) from None


def _names(cls: type[Event | Chunk]) -> list[tuple[str, str]]:
    """The names of the fields, in the trace and in the class."""
    return [(field.name.removesuffix("_"), field.name) for field in fields(cls)]


_NAMES = {cls: _names(cls) for cls in EVENTS.values()} | {
    cls: _names(cls) for cls in CHUNKS.values()
}


def _event(record: dict[str, Any]) -> Event:
    name = record["event"]
    cls = EVENTS.get(name)
    if cls is None:
        known = {"time_s": record.pop("time_s"), "host": record.pop("host")}
        return OtherEvent(**known, event=record.pop("event"), fields=record)
    if "chunks" in record and isinstance(record["chunks"], list):
        record["chunks"] = [_chunk(chunk) for chunk in record["chunks"]]
    return cls(**{ours: record[theirs] for theirs, ours in _NAMES[cls] if theirs in record})


def _chunk(record: dict[str, Any]) -> Chunk:
    cls = CHUNKS.get(record["chunk"])
    if cls is None:
        return OtherChunk(chunk=record.pop("chunk"), fields=record)
    return cls(**{ours: record[theirs] for theirs, ours in _NAMES[cls] if theirs in record})

