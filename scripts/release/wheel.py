"""Writes the wheel threadkeep-server, which contains the program: wheel.py DIRECTORY VERSION TRIPLE PROGRAM BILL NOTICES

The wheel contains the program as a script, and does not contain a module, like maturin's `bindings = "bin"`. maturin is
not used because it always compiles, but this script packs an existing program.
"""

import base64
import hashlib
import pathlib
import re
import sys
import time
import zipfile

from files import EPOCH, LEVEL, File, read
from platforms import platform_of, wheel_tag

LICENCES = ("LICENSE-APACHE", "LICENSE-MIT", "LICENSES-THIRD-PARTY.txt")
METADATA = """\
Metadata-Version: 2.4
Name: threadkeep-server
Version: {version}
Summary: The threadkeep server, which keeps the state of conversations on Redis or embedded
Keywords: threadkeep,conversation,state,chat,agent,session,redis
License-Expression: MIT OR Apache-2.0
{licences}
Classifier: Operating System :: {system}
Classifier: Programming Language :: Rust
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{page}"""
WHEEL = "Wheel-Version: 1.0\nGenerator: threadkeep\nRoot-Is-Purelib: false\nTag: {tag}\n"
SYSTEMS = {"linux": "POSIX :: Linux", "darwin": "MacOS"}


def python_version(version: str) -> str:
    """Converts a Cargo version to PEP 440: 1.0.0-rc.1 is 1.0.0rc1."""
    return re.sub(r"-(a|b|rc)(?:lpha|eta)?\.?(\d+)$", r"\1\2", version)


def record(files: list[File], name: str) -> File:
    rows = []
    for file in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.data).digest()).rstrip(b"=").decode()
        rows.append(f"{file.name},sha256={digest},{len(file.data)}\n")
    return File(name, "".join([*rows, f"{name},,\n"]).encode())


def write_zip(path: pathlib.Path, files: list[File]) -> None:
    # zip files cannot store times before 1980
    time_of_files = time.gmtime(max(EPOCH, 315_532_800))[:6]
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.name, time_of_files)
            entry.create_system = 3
            entry.external_attr = (0o100000 | file.mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.data, compresslevel=LEVEL)


def main(directory: str, version: str, triple: str, program: str, bill: str, notices: str) -> None:
    platform = platform_of(triple)
    version = python_version(version)
    tag = f"py3-none-{wheel_tag(platform, program)}"
    info = f"threadkeep_server-{version}.dist-info"
    metadata = METADATA.format(
        version=version,
        licences="\n".join(f"License-File: {name}" for name in LICENCES),
        system=SYSTEMS[platform.os],
        page=pathlib.Path("deploy/packages/README.md").read_text(),
    )
    files = [
        read(f"threadkeep_server-{version}.data/scripts/threadkeep", program, is_program=True),
        File(f"{info}/METADATA", metadata.encode()),
        File(f"{info}/WHEEL", WHEEL.format(tag=tag).encode()),
        *(read(f"{info}/licenses/{name}", path) for name, path in zip(LICENCES, (*LICENCES[:2], notices))),
        # https://peps.python.org/pep-0770/
        read(f"{info}/sboms/threadkeep.cdx.json", bill),
    ]
    files.append(record(files, f"{info}/RECORD"))
    write_zip(pathlib.Path(directory, f"threadkeep_server-{version}-{tag}.whl"), files)


main(*sys.argv[1:])
