"""A Grafana board against Grafana's own types, from the package grafana-foundation-sdk."""

import enum
import json
import typing


def problems(board):
    """What is wrong with a board, as sentences: fields that Grafana does not know, and values of another type."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    register_default_plugins()
    typed = Dashboard.from_json(board)
    # Fields that Grafana's types do not have are lost in them.
    found = list(lost(board, json.loads(json.dumps(typed, cls=JSONEncoder)), "board"))
    return found + list(mistyped(typed, "board"))


def lost(ours, theirs, where):
    if isinstance(ours, dict):
        if not isinstance(theirs, dict):
            yield f"{where} is {theirs!r} for Grafana"
            return
        for key, value in ours.items():
            if key not in theirs:
                # What is null is as if it were not there.
                if value is not None:
                    yield f"{where}.{key} is unknown to Grafana"
            else:
                yield from lost(value, theirs[key], f"{where}.{key}")
    elif isinstance(ours, list):
        if not isinstance(theirs, list) or len(ours) != len(theirs):
            yield f"{where} is {theirs!r} for Grafana"
            return
        for index, (one, other) in enumerate(zip(ours, theirs)):
            yield from lost(one, other, f"{where}[{index}]")
    elif ours != theirs:
        yield f"{where} is {theirs!r} for Grafana, not {ours!r}"


def mistyped(value, where):
    """Values of typed objects that are not of their type."""
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from mistyped(item, f"{where}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from mistyped(item, f"{where}.{key}")
    elif hasattr(value, "to_json"):
        module = __import__(type(value).__module__, fromlist=["*"])
        hints = typing.get_type_hints(type(value), vars(module))
        for name, hint in hints.items():
            item = getattr(value, name, None)
            if not fits(item, hint):
                yield f"{where}.{name} is {item!r}, not {hint}"
            yield from mistyped(item, f"{where}.{name}")


def fits(value, hint):
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in (typing.Any, object):
        return True
    if origin is typing.Union:
        return any(fits(value, part) for part in parts)
    if origin is typing.Literal:
        return value in parts
    if origin is list:
        return isinstance(value, list) and all(fits(item, parts[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(item, parts[1]) for item in value.values())
    if not isinstance(hint, type):
        return True
    if issubclass(hint, enum.Enum):
        return value in [member.value for member in hint] or isinstance(value, hint)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)
