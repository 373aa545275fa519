"""Prints the workspace crates to publish."""

import json
import subprocess

metadata = json.loads(
    subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"], check=True, stdout=subprocess.PIPE
    ).stdout
)
for package in metadata["packages"]:
    # null allows any registry
    if package["publish"] is None:
        print(package["name"])
