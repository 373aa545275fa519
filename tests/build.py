"""Builds all tests, and creates links to the test programs in target/tests: units/*, it, contract, account, upstream.

The stages of ./test.sh run these programs directly, because `cargo test` would wait while another Cargo command runs.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINKS = ROOT / "target" / "tests"


def link(path: Path, program: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(program)


def main() -> int:
    cargo = subprocess.Popen(
        ["cargo", "test", "--locked", "--workspace", "--no-run", "--message-format=json-render-diagnostics"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert cargo.stdout
    for line in cargo.stdout:
        message = json.loads(line)
        if not (message.get("profile", {}).get("test") and message.get("executable")):
            continue
        target = message["target"]
        if target["kind"] == ["test"]:
            link(LINKS / target["name"], message["executable"])
        else:
            link(LINKS / "units" / f"{target['kind'][0]}-{target['name']}", message["executable"])
    return cargo.wait()


if __name__ == "__main__":
    sys.exit(main())
