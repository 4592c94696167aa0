"""Packages that need not be installed."""

from __future__ import annotations

import importlib
from typing import Any


def load(module: str, extra: str) -> Any:
    """Imports a module of another package; if that is missing, the error says what to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        remedy = f"pip install {package}, or manypath with the extra `{extra}`"
        raise ModuleNotFoundError(f"{package} is not installed\n  try: {remedy}") from error
