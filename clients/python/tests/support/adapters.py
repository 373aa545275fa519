"""Parts of the tests of all adapters."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

from support.server import API_KEY, Server

REPOSITORY = Path(os.environ.get("REPOSITORY", Path(__file__).parents[4]))
NAMES = ["", ".", "..", "a/b", "../a", "a b", "a\n\0b", "é 👋 \ud83d", "%2e", "x" * 10_000, "x" * 9_999 + "y"]
"""Names that frameworks may come with."""

VALUES = [
    "",
    "plain",
    "é 👋 \u2028 \0",
    "\ud83d",  # a lone surrogate
    0,
    2**70,
    -1.5e300,
    0.1,
    True,
    None,
    [],
    {},
    {"b": {"": [1, [None]]}, "a": "order"},
    "x" * 100_000,
]
"""Values of JSON that have to come back equal."""


def unique(name: str = "") -> str:
    """A name that no other test uses."""
    return f"{uuid.uuid4().hex} {name}"


def environment_of(url: str) -> dict[str, str]:
    """The environment of a process whose clients use the server at this URL."""
    return {**os.environ, "THREADKEEP_URL": url, "THREADKEEP_API_KEY": API_KEY}


def start(script: Path, *args: str, url: str) -> subprocess.Popen[str]:
    """Starts a Python script whose clients use the server at this URL."""
    return subprocess.Popen(
        [sys.executable, str(script), *args],
        env=environment_of(url),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def output_of_example(name: str, server: Server) -> str:
    """Runs an example, and returns what it printed."""
    example = REPOSITORY / "clients/python/examples" / name
    process = start(example, url=server.url)
    output, _ = process.communicate(timeout=1_200)
    assert process.returncode == 0
    return output


def error_without(framework: str, adapter: str) -> str:
    """The error of the import of an adapter when its framework is not installed."""
    code = f"import sys; sys.modules[{framework!r}] = None; import {adapter}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]
