"""Exceptions of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .sim import Runs


class Error(Exception):
    """The base of all errors of this package."""


class WrittenError(Error, ValueError):
    """Something that was written is wrong.

    The text of the exception is what ``manypath`` prints for the same error.
    """

    place: str
    """The file, or the argument of the call, such as ``scenario['path'][1]['loss']``."""

    line: int | None
    """The line of the file, counted from 1; None if it was not in a file."""

    what: str
    """The error, in words."""

    remedy: str
    """What to do about it, in words."""

    def __init__(self, place: str, line: int | None, what: str, remedy: str) -> None:
        super().__init__(place, line, what, remedy)
        self.place, self.line, self.what, self.remedy = place, line, what, remedy

    def __str__(self) -> str:
        place = self.place if self.line is None else f"{self.place}:{self.line}"
        return f"{place}: {self.what}\n  try: {self.remedy}"


class ScenarioError(WrittenError):
    """A scenario that cannot be run."""


class LabError(WrittenError):
    """An experiment whose files are wrong, or whose results cannot be read or written."""


class AssociationError(Error, ConnectionError):
    """An endpoint or an association failed; the text says why."""


class TransferError(Error, RuntimeError):
    """Files were not sent or received, or not all of them; the text says why."""

    is_resumable: bool
    """The same transfer, begun again by its sender, goes on where this one ended."""

    def __init__(self, message: str, is_resumable: bool = False) -> None:
        super().__init__(message)
        self.is_resumable = is_resumable


class SpreadError(Error, RuntimeError):
    """Runs could not be spread over a cluster. What was made is kept; the text says what to do."""


class RunError(Error, RuntimeError):
    """Some runs gave no result. All others were made."""

    runs: Runs
    """The results of the other runs."""

    def __init__(self, message: str, runs: Runs) -> None:
        super().__init__(message)
        self.runs = runs


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the runs."""

    runs: Runs
    """The results of the runs that were over by then."""

    def __init__(self, message: str, runs: Runs) -> None:
        super().__init__(message)
        self.runs = runs
