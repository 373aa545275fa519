from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

from support.server import API_KEY, Server

REPOSITORY = Path(os.environ.get("REPOSITORY", Path(__file__).parents[4]))
NAMES = ["", ".", "..", "a/b", "../a", "a b", "a\n\0b", "é 👋 \ud83d", "%2e", "x" * 10_000, "x" * 9_999 + "y"]

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


def unique(name: str = "") -> str:
    return f"{uuid.uuid4().hex} {name}"


def environment_of(url: str) -> dict[str, str]:
    return {**os.environ, "THREADKEEP_URL": url, "THREADKEEP_API_KEY": API_KEY}


def start(script: Path, *args: str, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(script), *args],
        env=environment_of(url),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def output_of_example(name: str, server: Server) -> str:
    example = REPOSITORY / "clients/python/examples" / name
    process = start(example, url=server.url)
    output, _ = process.communicate(timeout=1_200)
    assert process.returncode == 0
    return output


def error_without(framework: str, adapter: str) -> str:
    """Imports an adapter without its framework. Returns the error message."""
    code = f"import sys; sys.modules[{framework!r}] = None; import {adapter}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]
