"""Transport parameters of a call."""

from __future__ import annotations

from collections.abc import Mapping


def written(settings: Mapping[str, object] | None) -> list[tuple[str, str]]:
    """Parameters as the command line takes them."""
    return [(name, _text(value)) for name, value in (settings or {}).items()]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
