"""Fails unless an npm package contains each file in its `exports`, and type declarations: exports.py PACKAGE"""

import json
import sys
import tarfile


def files_of(exported: object) -> list[str]:
    """Returns the files that an entry in `exports` names. An entry is a path, or has one path per condition."""
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
