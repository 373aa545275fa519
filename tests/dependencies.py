"""Caches compiled dependencies for other checkouts.

    tests/dependencies.py get     copies dependencies to target/, unless target/ has dependencies
    tests/dependencies.py keep    copies new dependencies from target/ to the cache

The cache has one set of dependencies for each compiler and each content of the manifests. If only the manifests differ,
Cargo reuses the dependencies that match. The cache keeps the two newest sets. If a set exceeds 6 GiB, the cache is emptied.
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
SETS_MAX = 2
SET_BYTES_MAX = 6 << 30


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


def cached_sets() -> list[Path]:
    """Returns the cached sets of this compiler, newest first."""
    sets = CACHE.glob(f"{compiler()}-*[0-9a-f]")
    return sorted(sets, key=lambda path: path.stat().st_mtime, reverse=True)


def member_names() -> set[str]:
    """Returns the names, without hashes, of the files that Cargo builds for packages of this workspace."""
    names = set()
    for package in metadata()["packages"]:
        for name in (package["name"], *(target["name"] for target in package["targets"])):
            crate = name.replace("-", "_")
            names |= {name, crate, f"lib{crate}"}
    return names


def copy(source: Path, destination: Path) -> None:
    members = member_names()

    def ignore(_folder: str, names: list[str]) -> set[str]:
        stems = ((name, re.match(r"(.+?)-[0-9a-f]{16}\b", name)) for name in names)
        return {name for name, stem in stems if stem and stem[1] in members}

    for folder in FOLDERS:
        shutil.copytree(source / folder, destination / folder, symlinks=True, ignore=ignore)


def get() -> None:
    target = ROOT / "target" / "debug"
    exact = CACHE / key()
    sets = [exact] if exact.exists() else cached_sets()
    if not sets or (target / FOLDERS[-1]).exists():
        return
    partial = ROOT / "target" / "part"
    shutil.rmtree(partial, ignore_errors=True)
    copy(sets[0], partial)
    target.mkdir(exist_ok=True)
    for folder in FOLDERS:
        shutil.rmtree(target / folder, ignore_errors=True)
        (partial / folder).rename(target / folder)
    partial.rmdir()


def keep() -> None:
    entry = CACHE / key()
    if entry.exists():
        os.utime(entry)
        return
    partial = CACHE / "part"
    shutil.rmtree(partial, ignore_errors=True)
    copy(ROOT / "target" / "debug", partial)
    is_too_large = sum(path.lstat().st_size for path in partial.rglob("*")) > SET_BYTES_MAX
    partial.rename(entry)
    os.utime(entry)
    sets = sorted(CACHE.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in sets[0 if is_too_large else SETS_MAX :]:
        shutil.rmtree(old)


if __name__ == "__main__":
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE.with_suffix(".lock"), "w") as lock:
        # only one checkout at a time may change the cache
        fcntl.flock(lock, fcntl.LOCK_EX)
        {"get": get, "keep": keep}[sys.argv[1]]()
