#!/usr/bin/env python3
"""Makes each kind of package, installs it in a bare Debian, and uses it there.

    tests/packaging/installs.py --binary target/checks/manypath --profile checks [--require] [KIND...]

Kinds: deb, static, cargo, image, units. A bare Debian has the essential packages only; it is made by debootstrap from
where apt on this machine gets its packages. In it run `--version`, `demo`, `send`, `relay` and `proxy`, with a network
of loopback only. "units" boots a Debian with the package and starts its units. Needs root. Nothing remains but what
was built, in target/.

--require fails instead of skipping what cannot be done on this machine.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import boot  # noqa: E402
import debian  # noqa: E402
from debian import Missing, call, musl  # noqa: E402
from failure import Failed  # noqa: E402
from requirements import add_require, skip  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
PACKAGES = TARGET / "packages"


class Roots:
    """Copies of a bare Debian, which is made when the first is wanted."""

    def __init__(self, work):
        self.work, self.origin = work, work / "bare"

    def copy(self, name):
        if not self.origin.exists():
            debian.bare(self.origin)
        call("cp", "-a", self.origin, self.work / name)
        return self.work / name

    def install(self, root, *packages):
        """Installs packages of Debian in a copy."""
        for words in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
            call("chroot", root, "apt-get", "--quiet", *words, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})


def head():
    done = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.strip() or None


def use(root, *more):
    """Runs what an installed manypath must do."""
    commit = ["--commit", head()] if head() else []
    done = subprocess.run(["unshare", "--net", "--mount", sys.executable, HERE / "inside.py", root, *commit, *more],
                          timeout=600, check=False)
    if done.returncode != 0:
        raise Failed("it does not work as installed")


def inside(root, *words):
    """Runs a command of the root, which sees none of this machine's services."""
    path = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive",
            "LC_ALL": "C"}
    return call("unshare", "--net", "--mount", "--pid", "--fork", "chroot", root, *words, env=path)


def left(root):
    """Files of manypath in a root."""
    return [path for path in root.rglob("*manypath*") if "var/lib/dpkg" not in str(path) and "var/log" not in str(path)]


def package(options):
    """Makes the .deb, once."""
    if options.package is None:
        call("packaging/build", "deb", "--profile", options.profile, *options.no_build, cwd=ROOT, seconds=3600)
        options.package = max(PACKAGES.glob("manypath_*.deb"), key=lambda path: path.stat().st_mtime)
    return options.package


def deb(options, roots):
    """The Debian package: it needs nothing that a bare Debian does not have, works, and goes without a trace."""
    made, root = package(options), roots.copy("deb")
    if before := left(root):
        raise Failed(f"there is a manypath before: {before}")
    shutil.copy(made, root / "package.deb")
    inside(root, "dpkg", "-i", "/package.deb")
    if changed := inside(root, "dpkg", "--verify", "manypath"):
        raise Failed(f"not as in the package: {changed}")
    call(sys.executable, HERE / "run.py", "--binary", options.binary, "--require", "files", cwd=ROOT)
    use(root)
    for secret in ("relay-users", "proxy-token"):
        (root / "etc/manypath" / secret).write_text("made by the administrator\n")
    inside(root, "dpkg", "-i", "/package.deb")
    inside(root, "dpkg", "-r", "manypath")
    if not (root / "etc/manypath/relay-users").exists():
        raise Failed("configuration is gone without purge")
    inside(root, "dpkg", "-P", "manypath")
    if rest := left(root):
        raise Failed(f"left behind: {rest}")
    return f"{made.name}, {made.stat().st_size / 1e6:.1f} MB"


def static(options, roots):
    """The static program, unpacked in /usr/local."""
    made, root = build_static(options), roots.copy("static")
    inside_local = ["tar", "-xzf", "-", "-C", "/usr/local", "--strip-components=1"]
    with open(made, "rb") as archive:
        subprocess.run(["chroot", root, *inside_local], stdin=archive, check=True, timeout=60)
    program = root / "usr/local/bin/manypath"
    linked = call("readelf", "-lW", program)
    if "INTERP" in linked or "Shared library" in call("readelf", "-dW", program):
        raise Failed("it needs libraries of the system")
    # Not even the libraries that every Debian has.
    for library in [*root.glob("lib/*/libc.so*"), *root.glob("usr/lib/*/libc.so*"), *root.glob("usr/lib/*/ld-linux*")]:
        library.unlink(missing_ok=True)
    use(root, "--static")
    return f"{made.name}, {made.stat().st_size / 1e6:.1f} MB; the program {program.stat().st_size / 1e6:.1f} MB"


def build_static(options):
    if options.archive is None:
        environment = musl.environment(os.uname().machine, TARGET / "musl")
        call("packaging/build", "static", "--profile", options.profile, cwd=ROOT, seconds=7200,
             env={**os.environ, **environment})
        options.archive = max((TARGET / "musl/packages").glob("manypath-*-linux.tar.gz"),
                              key=lambda path: path.stat().st_mtime)
    return options.archive


def cargo(options, roots):
    """`cargo install`, into /usr/local."""
    root = roots.copy("cargo")
    call("cargo", "install", "--quiet", "--locked", "--path", "crates/cli", "--profile", options.profile, "--no-track",
         "--root", root / "usr/local", cwd=ROOT, seconds=7200)
    use(root)
    return "in /usr/local"


def image(options, roots):
    """The container's image, made by buildah, which needs no daemon."""
    if shutil.which("buildah") is None:
        raise Missing("buildah is not installed")
    folder = Path(str(build_static(options)).removesuffix(".tar.gz"))
    store = ["--root", roots.work / "images", "--runroot", roots.work / "runs", "--storage-driver", "vfs"]
    built = ["build", "--isolation", "chroot", "--network", "host", "-t", "manypath", "-f", "packaging/Containerfile"]
    call("buildah", *store, *built, folder, cwd=ROOT)
    container = call("buildah", *store, "from", "--pull-never", "localhost/manypath").split()[-1]
    wanted = {"OCIv1.Config.Entrypoint": "[/usr/bin/manypath]", "OCIv1.Config.WorkingDir": "/data"}
    for key, value in wanted.items():
        said = call("buildah", *store, "inspect", "--format", f"{{{{.{key}}}}}", container).strip()
        if said != value:
            raise Failed(f"{key} is {said}")
    mounted = Path(call("buildah", *store, "mount", container).strip())
    there = {str(path.relative_to(mounted)) for path in mounted.rglob("*") if path.is_file()}
    if there != {"usr/bin/manypath"}:
        raise Failed(f"in the image: {sorted(there)}")
    try:
        use(mounted, "--static")
    finally:
        call("buildah", *store, "umount", container)
        call("buildah", *store, "rm", container)
    return "scratch and one file"


def units(options, roots):
    """systemd boots, and runs the units of the package."""
    made, root = package(options), roots.work / "booted"
    debian.bare(root, "systemd-sysv", "dbus")
    # As after the first boot, which asks questions.
    (root / "etc/machine-id").write_text(f"{uuid.uuid4().hex}\n")
    shutil.copy(made, root / "package.deb")
    inside(root, "dpkg", "-i", "/package.deb")
    return boot.units(root)


KINDS = {kind.__name__: kind for kind in (deb, static, cargo, image, units)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, help="the program, built with this profile; or it is built first")
    parser.add_argument("--profile", default="dist", help="of the builds [default: dist]")
    add_require(parser)
    parser.add_argument("--archive", type=Path, help="a static program that packaging/build made")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all by default")
    options = parser.parse_args()
    unknown = set(options.kinds) - set(KINDS)
    if unknown:
        parser.error(f"no such kind: {', '.join(sorted(unknown))}")
    if os.geteuid() != 0:
        return skip(options, "the packages: needs root")
    options.no_build = ["--no-build"] if options.binary else []
    options.binary = (options.binary or TARGET / options.profile / "manypath").resolve()
    options.package = None
    failed = False
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="installs-", dir=TARGET) as work:
        roots = Roots(Path(work))
        for name in options.kinds or KINDS:
            begin = time.monotonic()
            try:
                told, outcome = KINDS[name](options, roots), "ok    "
            except Missing as why:
                told, outcome, failed = str(why), "SKIPPED", failed or options.require
            except (Failed, RuntimeError, OSError, subprocess.SubprocessError) as why:
                told, outcome, failed = str(why), "FAILED", True
            print(f"{outcome} {name} ({time.monotonic() - begin:.0f} s): {told}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
