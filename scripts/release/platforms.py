"""Names of the program's platforms in each registry."""

import re
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Platform:
    """A target triple, with the names that Node.js (`os`, `cpu`) and Python (`machine`) use for the platform."""

    triple: str
    os: str
    cpu: str
    machine: str

    @property
    def npm_package(self) -> str:
        return f"threadkeep-server-{self.os}-{self.cpu}"


PLATFORMS = {
    platform.triple: platform
    for platform in (
        Platform("x86_64-unknown-linux-gnu", "linux", "x64", "x86_64"),
        Platform("aarch64-unknown-linux-gnu", "linux", "arm64", "aarch64"),
        Platform("aarch64-apple-darwin", "darwin", "arm64", "arm64"),
    )
}


def platform_of(triple: str) -> Platform:
    """Returns the platform of a target triple. Exits with a message if releases do not support the platform."""
    if triple not in PLATFORMS:
        raise SystemExit(f"release: no packages for {triple}. Platforms: {', '.join(PLATFORMS)}")
    return PLATFORMS[triple]


def wheel_tag(platform: Platform, program: str) -> str:
    """Returns the platform tag for a wheel that contains `program`. The tag names the oldest system that can run it."""
    if platform.os == "linux":
        # the tag contains the newest glibc version that any symbol requires (https://peps.python.org/pep-0600/)
        symbols = output("readelf", "--version-info", "--wide", program)
        versions = [tuple(map(int, found)) for found in re.findall(r"\bGLIBC_(\d+)\.(\d+)", symbols)]
        if not versions:
            raise SystemExit(f"release: {program} does not use glibc")
        major, minor = max(versions)
        return f"manylinux_{major}_{minor}_{platform.machine}"
    oldest = re.search(r"\bminos (\d+)\.", output("otool", "-l", program))
    if not oldest:
        raise SystemExit(f"release: {program} does not name the oldest macOS that runs it")
    # since macOS 11, tags have no minor version
    return f"macosx_{oldest[1]}_0_{platform.machine}"


def output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
