"""Runs of `manypath emulate`: programs at the hosts of a scenario, bounded in time, and what the
links say of themselves.
"""
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass
class Emulated:
    """An emulation that is over. Without an error its program ended well."""
    printed: str = ""
    error: str | None = None
    # Of the links: 99 of 100 packets were late by at most this, and the warnings.
    late_p99_s: float | None = None
    warnings: list = field(default_factory=list)


def python(script, *words):
    """A command of `sh` that becomes a script of this folder."""
    return shlex.join(["exec", sys.executable, str(HERE / script), *map(str, words)])


def after(signal_file, command):
    """A command of `sh` that ends at once and leaves another one, which begins when the file
    exists. Emulate ends it.
    """
    return f"(until [ -e {shlex.quote(str(signal_file))} ]; do sleep 0.02; done; {command}) &"


# Emulations under way, in any thread, and whether none shall begin any more.
CHILDREN = set()
STOPPED = threading.Event()


def stop_all():
    """Ends the emulations of other threads, which see them fail."""
    STOPPED.set()
    for child in list(CHILDREN):
        child.send_signal(signal.SIGTERM)


def stop(child):
    """Ends an emulation, which ends all that runs in it."""
    child.send_signal(signal.SIGTERM)
    try:
        return child.communicate(timeout=15)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.communicate()


def emulate(options, scenario, seed, directory, program, at=(), mptcp=False, host=None, limit_s=60.0):
    """Runs a program by `sh` over a scenario, beside the commands `at` (pairs of a host and a
    command).
    """
    if STOPPED.is_set():
        return Emulated(error="interrupted")
    report = Path(directory, "report.json")
    report.unlink(missing_ok=True)
    command = [str(options.manypath), "emulate", str(scenario), "--quiet", "--seed", str(seed), "--report", str(report)]
    command += ["--mptcp"] if mptcp else []
    command += ["--host", host] if host else []
    command += [word for name, text in at for word in ("--at", name, text)]
    child = subprocess.Popen([*command, "--", "sh", "-c", program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"})
    CHILDREN.add(child)
    done = Emulated()
    try:
        done.printed, errors = child.communicate(timeout=limit_s)
        if child.returncode != 0:
            done.error = (errors.strip().splitlines() or [f"exit code {child.returncode}"])[0]
    except subprocess.TimeoutExpired:
        done.printed, _ = stop(child)
        done.error = f"not over after {limit_s:.0f} s"
    except BaseException:
        stop(child)
        raise
    finally:
        CHILDREN.discard(child)
    if report.exists():
        links = json.loads(report.read_text())
        done.late_p99_s, done.warnings = links["lateness"]["p99_s"], links["warnings"]
    return done
