from __future__ import annotations

import json
import os
from importlib.metadata import distribution, version
from importlib.resources import files
from pathlib import Path

import threadkeep

REPOSITORY = Path(os.environ.get("REPOSITORY", Path(__file__).parents[3]))


def test_the_version_equals_the_server_version() -> None:
    described = json.loads((REPOSITORY / "openapi.json").read_text())["info"]["version"]
    assert threadkeep.__version__ == version("threadkeep") == described


def test_the_package_is_typed_and_licensed() -> None:
    assert files("threadkeep").joinpath("py.typed").is_file()
    metadata = distribution("threadkeep").metadata
    assert metadata["License-Expression"] == "MIT OR Apache-2.0"
    assert set(metadata.get_all("License-File") or []) == {"LICENSE-APACHE", "LICENSE-MIT"}
