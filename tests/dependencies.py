"""Keeps compiled dependencies from one checkout to the next.

usage: tests/dependencies.py get     copies them into a target/ that has none
       tests/dependencies.py keep    copies those of target/, unless they are kept already

They are kept below the user's cache directory, by the compiler and the manifests. If only the manifests have changed, Cargo
takes what still fits and compiles the rest. The two newest sets stay; one that has grown too large starts again.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "threadkeep" / "dependencies"
# the folders of Cargo that hold compiled packages
FOLDERS = (".fingerprint", "build", "deps")
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
    """The sets of this compiler, the newest first."""
    sets = CACHE.glob(f"{compiler()}-*[0-9a-f]")
    return sorted(sets, key=lambda path: path.stat().st_mtime, reverse=True)


def of_members() -> set[str]:
    """The names, without their hashes, that Cargo gives files of the workspace's own packages."""
    names = set()
    for package in metadata()["packages"]:
        for name in (package["name"], *(target["name"] for target in package["targets"])):
            crate = name.replace("-", "_")
            names |= {name, crate, f"lib{crate}"}
    return names


def copy(source: Path, to: Path, ignored: set[str]) -> None:
    def ignore(_folder: str, names: list[str]) -> Iterator[str]:
        stems = ((name, re.match(r"(.+?)-[0-9a-f]{16}\b", name)) for name in names)
        return (name for name, stem in stems if stem and stem[1] in ignored)

    for folder in FOLDERS:
        shutil.copytree(source / folder, to / folder, symlinks=True, ignore=ignore)


def get() -> None:
    target = ROOT / "target" / "debug"
    exact = CACHE / key()
    sets = [exact] if exact.exists() else kept()
    if sets and not (target / "deps").exists():
        copy(sets[0], target, set())


def keep() -> None:
    to = CACHE / key()
    if to.exists():
        os.utime(to)
        return
    part = CACHE / f"part-{os.getpid()}"
    try:
        copy(ROOT / "target" / "debug", part, of_members())
        if sum(path.lstat().st_size for path in part.rglob("*")) > MAX_BYTES:
            print(f"{CACHE} has become too large: the next checkout compiles all dependencies")
            shutil.rmtree(CACHE)
            return
        part.rename(to)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    for old in kept()[SETS:]:
        shutil.rmtree(old)


if __name__ == "__main__":
    {"get": get, "keep": keep}[sys.argv[1]]()
