"""manypath: multipath transport (SCTP) in a deterministic simulator, and its laboratory.

- :mod:`manypath.sim` runs scenarios and gives results as dicts, Arrow tables and pandas frames.

Names of results end with their unit: ``transfer_time_s`` is in seconds, ``goodput_bps`` in bits per
second, ``cwnd_bytes`` in bytes. Paths are counted from 1.
"""

from . import sim
from ._errors import Error, Interrupted, LabError, RunError, ScenarioError
from ._manypath import __version__

__all__ = [
    "Error",
    "Interrupted",
    "LabError",
    "RunError",
    "ScenarioError",
    "__version__",
    "sim",
]
