"""Writes archives whose bytes depend only on their contents and $SOURCE_DATE_EPOCH."""

import gzip
import io
import os
import pathlib
import sys
import tarfile
from dataclasses import dataclass

EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
# level 9 takes three times as long as level 6, and makes the compressed program only 0.6 % smaller
LEVEL = 6


@dataclass(frozen=True)
class File:
    name: str
    data: bytes
    is_program: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.is_program else 0o644


def read(name: str, path: str | pathlib.Path, is_program: bool = False) -> File:
    return File(name, pathlib.Path(path).read_bytes(), is_program)


def write_tar(path: str | pathlib.Path, root: str, files: list[File]) -> None:
    """Writes a .tar.gz file that contains `files`, sorted by name, in a top folder called `root`."""
    with open(path, "wb") as out, gzip.GzipFile("", "wb", LEVEL, out, EPOCH) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for file in sorted(files, key=lambda file: file.name):
                entry = tarfile.TarInfo(f"{root}/{file.name}")
                entry.size, entry.mode, entry.mtime = len(file.data), file.mode, EPOCH
                archive.addfile(entry, io.BytesIO(file.data))


def below(folder: str) -> list[File]:
    """Reads all files below a folder, with relative names."""
    root = pathlib.Path(folder)
    return [read(str(path.relative_to(root)), path) for path in root.rglob("*") if path.is_file()]


def main(path: str, root: str, *sources: str) -> None:
    """Writes an archive. A source is NAME=PATH for a file, NAME*=PATH for a program, or the path of a folder."""
    files = []
    for source in sources:
        name, _, file = source.partition("=")
        files += [read(name.rstrip("*"), file, name.endswith("*"))] if file else below(source)
    write_tar(path, root, files)


if __name__ == "__main__":
    main(*sys.argv[1:])
