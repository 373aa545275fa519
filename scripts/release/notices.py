"""Writes the licences of the crates in the program, for distribution with the program: notices.py FILE TRIPLE BILL

Lists each licence text once, below its crates. For a crate without a licence file, lists only the licence's name.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

NAMES = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.I)
# source files may also have such names
NOT_TEXTS = (".rs", ".c", ".h", ".html", ".toml", ".sh")
RULE = "-" * 100


def folders(triple: str) -> dict[tuple[str, str], pathlib.Path]:
    """Returns the source folder of each crate."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", triple]
    packages = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    return {(each["name"], each["version"]): pathlib.Path(each["manifest_path"]).parent for each in packages}


def main(file: str, triple: str, bill: str) -> None:
    sources = folders(triple)
    crates_of = collections.defaultdict(list)
    listed = []
    for crate in json.loads(pathlib.Path(bill).read_text())["components"]:
        if "hashes" not in crate:
            # a workspace crate
            continue
        name = f"{crate['name']} {crate['version']}"
        listed.append(f"{name}: {crate['licenses'][0]['expression']}")
        folder = sources[crate["name"], crate["version"]]
        # includes C code in a subfolder, such as jemalloc/COPYING
        for path in sorted([*folder.glob("*"), *folder.glob("*/*")]):
            if path.is_file() and NAMES.match(path.name) and path.suffix not in NOT_TEXTS:
                crates_of[path.read_text(errors="replace").replace("\r\n", "\n").strip()].append(name)
    parts = ["The program contains these crates:\n\n" + "\n".join(listed)]
    for text, crates in sorted(crates_of.items(), key=lambda item: item[1]):
        parts.append(f"{RULE}\n{', '.join(sorted(set(crates)))}\n{RULE}\n\n{text}")
    pathlib.Path(file).write_text("\n\n".join(parts) + "\n")


main(*sys.argv[1:])
