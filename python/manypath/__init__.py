"""manypath: multipath transport (SCTP) in a deterministic simulator, and its laboratory.

- :mod:`manypath.sim` runs scenarios and gives results as dicts, Arrow tables and pandas frames.
- :mod:`manypath.trace` reads what happened in a run, event by event.
- :mod:`manypath.lab` runs the experiments of papers and draws their figures.
- :mod:`manypath.net` opens endpoints and associations over real networks, with asyncio.
- :mod:`manypath.transfer` sends and receives files and directories: :func:`send_file`,
  :func:`receive_files`.
- :mod:`manypath.policy` is for schedulers and congestion control of your own.

Names of results end with their unit: ``transfer_time_s`` is in seconds, ``goodput_bps`` in bits per
second, ``cwnd_bytes`` in bytes. Paths are counted from 1.
"""

from . import lab, net, policy, sim, trace, transfer
from ._errors import (
    AssociationError,
    Error,
    Interrupted,
    LabError,
    RunError,
    ScenarioError,
    SpreadError,
    TransferError,
)
from ._manypath import __version__
from .transfer import receive_files, send_file

# What tracebacks call them.
for _error in (
    AssociationError,
    Error,
    Interrupted,
    LabError,
    RunError,
    ScenarioError,
    SpreadError,
    TransferError,
):
    _error.__module__ = __name__
del _error

__all__ = [
    "AssociationError",
    "Error",
    "Interrupted",
    "LabError",
    "RunError",
    "ScenarioError",
    "SpreadError",
    "TransferError",
    "__version__",
    "lab",
    "net",
    "policy",
    "receive_files",
    "send_file",
    "sim",
    "trace",
    "transfer",
]
