"""Writes the bill of materials of a program, as CycloneDX 1.5 (https://cyclonedx.org): bill.py FILE VERSION TRIPLE PACKAGE

Lists the crates in the program for TRIPLE with default features. For each crate, lists the version, licence,
dependencies, and checksum from Cargo.lock. Omits crates that only run during a build.
"""

import datetime
import json
import pathlib
import subprocess
import sys
import tomllib
import uuid

from files import EPOCH

LICENCES = "MIT OR Apache-2.0"


def tree(triple: str, package: str) -> list[tuple[int, str, str, str]]:
    """Returns the depth, name, version and licence of the crate in each line that `cargo tree` prints."""
    command = ["cargo", "tree", "--locked", "--package", package, "--target", triple, "--prefix", "depth"]
    command += ["--edges", "normal,no-proc-macro", "--format", "|{p}|{l}"]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    rows = []
    for line in lines:
        # a line is, for example, `1|serde v1.0.0|MIT/Apache-2.0 (*)`; workspace crates have a path after the version
        depth, crate, licence = line.split("|")
        name, version = crate.split()[:2]
        rows.append((int(depth), name, version[1:], licence.removesuffix(" (*)").replace("/", " OR ")))
    return rows


def checksums() -> dict[tuple[str, str], str]:
    packages = tomllib.loads(pathlib.Path("Cargo.lock").read_text())["package"]
    return {(package["name"], package["version"]): package.get("checksum", "") for package in packages}


def purl(name: str, version: str) -> str:
    return f"pkg:cargo/{name}@{version}"


def component(name: str, version: str, licence: str, checksum: str) -> dict[str, object]:
    return {
        "type": "library",
        "bom-ref": purl(name, version),
        "name": name,
        "version": version,
        "purl": purl(name, version),
        "licenses": [{"expression": licence}],
        # a workspace crate has no checksum
        **({"hashes": [{"alg": "SHA-256", "content": checksum}]} if checksum else {}),
    }


def main(file: str, version: str, triple: str, package: str) -> None:
    checksum_of = checksums()
    uses: dict[str, set[str]] = {}
    components = {}
    path: list[str] = []
    for depth, name, crate_version, licence in tree(triple, package):
        reference = purl(name, crate_version)
        uses.setdefault(reference, set())
        if depth > 0:
            uses[path[depth - 1]].add(reference)
            components[reference] = component(name, crate_version, licence, checksum_of[name, crate_version])
        path[depth:] = [reference]
    program = {
        "type": "application",
        "bom-ref": purl(package, version),
        "name": package,
        "version": version,
        "purl": purl(package, version),
        "licenses": [{"expression": LICENCES}],
        "properties": [{"name": "threadkeep:target", "value": triple}],
    }
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc).isoformat(),
            "component": program,
        },
        "components": [components[reference] for reference in sorted(components)],
        "dependencies": [{"ref": user, "dependsOn": sorted(used)} for user, used in sorted(uses.items())],
    }
    # equal contents have equal serial numbers
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill))
    pathlib.Path(file).write_text(json.dumps({**bill, "serialNumber": f"urn:uuid:{number}"}, indent=2) + "\n")


main(*sys.argv[1:])
