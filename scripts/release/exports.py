"""Fails unless an npm package has each file that its manifest exports, with its types: exports.py PACKAGE"""

import json
import sys
import tarfile


def main(path: str) -> None:
    with tarfile.open(path) as archive:
        names = set(archive.getnames())
        exported = json.load(archive.extractfile("package/package.json"))["exports"].values()
    files = [file.removeprefix("./") for file in exported]
    files += [file.removesuffix(".js") + ".d.ts" for file in files if file.endswith(".js")]
    missing = [file for file in files if f"package/{file}" not in names]
    if missing:
        raise SystemExit(f"release: {path} lacks {', '.join(missing)}")


main(*sys.argv[1:])
