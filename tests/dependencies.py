"""Caches compiled dependencies for other checkouts.

    tests/dependencies.py get     copies dependencies to target/, unless target/ has dependencies
    tests/dependencies.py keep    copies new dependencies from target/ to the cache

The cache has one set of dependencies per compiler and state of the manifests. If only the manifests differ, Cargo reuses the
dependencies that still match. The cache keeps the two newest sets. A set over 6 GiB empties the cache.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "threadkeep" / "dependencies"
FOLDERS = ("deps", "build", ".fingerprint")
SETS = 2
MAX_BYTES = 6 << 30


def output_of(*command: str) -> bytes:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout


def metadata() -> dict:
    return json.loads(output_of("cargo", "metadata", "--no-deps", "--locked", "--format-version", "1"))


def compiler() -> str:
    return hashlib.sha256(output_of("rustc", "-vV")).hexdigest()[:8]


def key() -> str:
    content = hashlib.sha256((ROOT / "Cargo.lock").read_bytes())
    for package in metadata()["packages"]:
        content.update(Path(package["manifest_path"]).read_bytes())
    return f"{compiler()}-{content.hexdigest()[:16]}"


def kept() -> list[Path]:
    """Returns the cached sets of this compiler, newest first."""
    sets = CACHE.glob(f"{compiler()}-*[0-9a-f]")
    return sorted(sets, key=lambda path: path.stat().st_mtime, reverse=True)


def of_members() -> set[str]:
    """Returns the names, without hashes, of the files that Cargo builds for packages of this workspace."""
    names = set()
    for package in metadata()["packages"]:
        for name in (package["name"], *(target["name"] for target in package["targets"])):
            crate = name.replace("-", "_")
            names |= {name, crate, f"lib{crate}"}
    return names


def copy(source: Path, to: Path) -> None:
    members = of_members()

    def ignore(_folder: str, names: list[str]) -> set[str]:
        stems = ((name, re.match(r"(.+?)-[0-9a-f]{16}\b", name)) for name in names)
        return {name for name, stem in stems if stem and stem[1] in members}

    for folder in FOLDERS:
        shutil.copytree(source / folder, to / folder, symlinks=True, ignore=ignore)


def get() -> None:
    target = ROOT / "target" / "debug"
    exact = CACHE / key()
    sets = [exact] if exact.exists() else kept()
    if not sets or (target / FOLDERS[-1]).exists():
        return
    part = ROOT / "target" / "part"
    shutil.rmtree(part, ignore_errors=True)
    copy(sets[0], part)
    target.mkdir(exist_ok=True)
    for folder in FOLDERS:
        shutil.rmtree(target / folder, ignore_errors=True)
        (part / folder).rename(target / folder)
    part.rmdir()


def keep() -> None:
    to = CACHE / key()
    if to.exists():
        os.utime(to)
        return
    part = CACHE / "part"
    shutil.rmtree(part, ignore_errors=True)
    copy(ROOT / "target" / "debug", part)
    is_too_large = sum(path.lstat().st_size for path in part.rglob("*")) > MAX_BYTES
    part.rename(to)
    os.utime(to)
    sets = sorted(CACHE.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in sets[0 if is_too_large else SETS :]:
        shutil.rmtree(old)


if __name__ == "__main__":
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE.with_suffix(".lock"), "w") as lock:
        # only one checkout at a time may change the cache
        fcntl.flock(lock, fcntl.LOCK_EX)
        {"get": get, "keep": keep}[sys.argv[1]]()
