from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.server import API_KEY, Server

REPOSITORY = Path(os.environ.get("REPOSITORY", Path(__file__).parents[3]))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["docs/python.md", "docs/coming-from.md", "clients/python/README.md"])
def test_the_examples_run(server: Server, page: str) -> None:
    blocks = BLOCK.findall((REPOSITORY / page).read_text())
    # tests/openai.sh runs the programs for OpenAI's packages
    code = "\n".join(block for block in blocks if "from openai" not in block)
    code = code.replace("a-secret-of-32-characters-or-more", API_KEY)
    environment = {**os.environ, "THREADKEEP_URL": server.url, "THREADKEEP_API_KEY": API_KEY}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
