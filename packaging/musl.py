"""Rust's library for musl: the one that rustup installed, or else one that cargo builds from Debian's package of its
sources. Where that is fetched from is what apt on this machine is configured for.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Those that may have the sources of this machine's compiler.
SUITES = ["stable", "stable-backports", "testing", "unstable"]


class Missing(Exception):
    """Something cannot be had on this machine."""


def call(*command, seconds=600, **more):
    """What a command prints; it must succeed."""
    done = subprocess.run([str(word) for word in command], text=True, timeout=seconds, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def archive():
    """The address of Debian's archive, and the name of this machine's release."""
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    codename = release.get("VERSION_CODENAME", "").strip('"')
    if shutil.which("apt-get") is None:
        raise Missing("this is no Debian")
    said = call("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Identifier: Packages")
    for line in said.splitlines():
        address, name, component = line.split()
        if (name, component) == (codename, "main"):
            return address, codename
    raise Missing("apt is not configured for a release of Debian")


def triple(architecture):
    """The target of cargo for a static program."""
    return f"{architecture}-unknown-linux-musl"


def is_installed(architecture):
    """Tells if rustup has installed Rust's library for musl."""
    library = Path(call("rustc", "--print", "target-libdir", "--target", triple(architecture)).strip())
    return any(library.glob("libstd-*.rlib"))


def environment(architecture, work):
    """The environment in which cargo builds for musl. If rustup has not installed Rust's library for it, cargo builds
    that, too, from Debian's package of the sources of just this compiler, in a copy of the toolchain. The copy stays in
    `work`, so that what was built with it stays, too."""
    if is_installed(architecture):
        return {"CARGO_TARGET_DIR": str(work)}
    version = re.match(r"rustc (\S+)", call("rustc", "--version"))[1]
    toolchain, done = work / "toolchain", work / f"toolchain-{version}-is-complete"
    if not done.exists():
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        copy_toolchain(toolchain)
        try:
            add_sources(toolchain / "lib/rustlib/src/rust", version, work)
        except Missing as why:
            raise Missing(f"{why}; `rustup target add {triple(architecture)}` installs Rust's library for it") from why
        done.touch()
    return {
        "PATH": f"{toolchain / 'bin'}:{os.environ['PATH']}",
        "CARGO_TARGET_DIR": str(work),
        # A stable compiler builds its own library only so.
        "RUSTC_BOOTSTRAP": "1",
        "MANYPATH_CARGO_OPTIONS": "-Z build-std",
        # The start files of musl come from zig.
        f"CARGO_TARGET_{triple(architecture).upper().replace('-', '_')}_RUSTFLAGS": "-C link-self-contained=no",
    }


def copy_toolchain(to):
    system = call("rustc", "--print", "sysroot").strip()
    # Hard links, if that is the same disk.
    if subprocess.run(["cp", "-al", system, to], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        shutil.rmtree(to, ignore_errors=True)
        call("cp", "-a", system, to)


def add_sources(to, version, work):
    """Adds the sources of Rust's library, unless rustup has installed them."""
    if (to / "library").exists():
        return
    package, unpacked = download("rust-src", version, work), work / "rust-src"
    call("dpkg-deb", "-x", package, unpacked)
    to.mkdir(parents=True)
    (unpacked / f"usr/src/rustc-{version}/library").rename(to / "library")
    shutil.rmtree(unpacked)
    package.unlink()


def download(name, version, work):
    """Fetches a package of this upstream version, from whichever suite has it. apt checks its signature; the lists
    and settings of this machine stay as they are."""
    address, _codename = archive()
    state = work / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True)
    sources = state / "sources.list"
    sources.write_text("".join(f"deb [signed-by={KEYRING}] {address} {suite} main\n" for suite in SUITES))
    own = ["-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=/dev/null",
           "-o", f"Dir::State::lists={state / 'lists'}", "-o", f"Dir::Cache={state / 'cache'}",
           "-o", "APT::Sandbox::User=root"]
    call("apt-get", *own, "-q", "update")
    for line in call("apt-cache", *own, "madison", name).splitlines():
        there = line.split("|")[1].strip()
        if re.match(rf"{re.escape(version)}[+-]", there):
            call("apt-get", *own, "-q", "download", f"{name}={there}", cwd=work)
            shutil.rmtree(state)
            return next(work.glob(f"{name}_*.deb"))
    raise Missing(f"Debian has no {name} {version}")
