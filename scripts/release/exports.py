"""Fails unless an npm package contains each file in its manifest's exports, with types: exports.py PACKAGE"""

import json
import sys
import tarfile


def files_of(exported: object) -> list[str]:
    """Returns the files of an entry of `exports`: a path, or one path per condition."""
    if isinstance(exported, dict):
        return [file for entry in exported.values() for file in files_of(entry)]
    return [str(exported).removeprefix("./")]


def main(path: str) -> None:
    with tarfile.open(path) as archive:
        names = set(archive.getnames())
        exported = files_of(json.load(archive.extractfile("package/package.json"))["exports"])
    types = [file.removesuffix(".js") + ".d.ts" for file in exported if file.endswith(".js")]
    missing = sorted(file for file in {*exported, *types} if f"package/{file}" not in names)
    if missing:
        raise SystemExit(f"release: {path} lacks {', '.join(missing)}")


main(*sys.argv[1:])
