"""Prints the crates of the workspace that are to be published."""

import json
import subprocess

metadata = json.loads(
    subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"], check=True, stdout=subprocess.PIPE
    ).stdout
)
for package in metadata["packages"]:
    # null: in any registry
    if package["publish"] is None:
        print(package["name"])
