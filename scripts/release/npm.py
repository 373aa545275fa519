"""Writes the npm packages of the server: npm.py DIRECTORY VERSION TRIPLE PROGRAM NOTICES

The package threadkeep-server has a launcher, and depends on one package per platform. npm installs only the package for
the current platform. The names do not have a scope (@name/), because a scope requires an organisation in the registry.
"""

import json
import pathlib
import sys

from files import File, read, write_tar
from platforms import PLATFORMS, Platform, platform_of

PACKAGES = pathlib.Path("deploy/packages")
COMMON = {
    "license": "MIT OR Apache-2.0",
    "keywords": ["threadkeep", "conversation", "state", "chat", "agent", "session", "redis"],
}


def launcher(version: str) -> dict[str, object]:
    return {
        "name": "threadkeep-server",
        "version": version,
        "description": "The threadkeep server, which keeps the state of conversations on Redis or embedded",
        **COMMON,
        "bin": {"threadkeep-server": "bin/threadkeep.js", "threadkeep": "bin/threadkeep.js"},
        "engines": {"node": ">=18"},
        "optionalDependencies": {platform.npm_package: version for platform in PLATFORMS.values()},
    }


def program_of(platform: Platform, version: str) -> dict[str, object]:
    return {
        "name": platform.npm_package,
        "version": version,
        "description": f"The program of threadkeep-server for {platform.os} {platform.cpu}",
        **COMMON,
        # makes Yarn unpack this package, because the program cannot run from an archive
        "preferUnplugged": True,
        "os": [platform.os],
        "cpu": [platform.cpu],
        **({"libc": ["glibc"]} if platform.os == "linux" else {}),
    }


def write(directory: str, manifest: dict[str, object], *own: File) -> None:
    files = [
        *own,
        File("package.json", (json.dumps(manifest, indent=2) + "\n").encode()),
        read("README.md", PACKAGES / "README.md"),
        *(read(name, name) for name in ("LICENSE-APACHE", "LICENSE-MIT")),
    ]
    write_tar(pathlib.Path(directory, f"{manifest['name']}-{manifest['version']}.tgz"), "package", files)


def main(directory: str, version: str, triple: str, program: str, notices: str) -> None:
    write(directory, launcher(version), read("bin/threadkeep.js", PACKAGES / "threadkeep.js", is_program=True))
    own = read("bin/threadkeep", program, is_program=True), read("LICENSES-THIRD-PARTY.txt", notices)
    write(directory, program_of(platform_of(triple), version), *own)


main(*sys.argv[1:])
