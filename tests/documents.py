"""Runs the code blocks in the documentation against a server. Usage: documents.py URL API_KEY."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

# pages whose shell blocks are skipped, with the reason
SKIPPED_PAGES = {
    "docs/agentuity.md": "tests/agentuity.sh runs the apps",
    "docs/limits.md": "it takes an hour",
    "docs/model-loop.md": "tests/openai.sh runs turns of a model",
}
# texts that the output of a page must contain
EXPECTED = {
    "README.md": [f'"{writer} {n}"' for writer in ("page", "agent") for n in range(1, 6)],
    "docs/agents.md": ['"state":"granted"', '"state":"in_doubt"', '"repeated":false', '"next_cursor":null'],
    "docs/concepts.md": ['"items":[]'],
    "docs/erasure.md": ['"complete":true'],
    "docs/events.md": ['"archives":['],
    "docs/going-back.md": ['"checkpoint":1', '"forked_from"', '{"messages":["Plan a trip","To Paris?"]}'],
    "docs/http.md": ['"Rome"', '"rights":["all"]', "idempotency-replayed: true", '"version":3'],
    "docs/install.md": ['{"status":"ok"}', '{"messages":[{"role":"user","content":"Hello"}]}'],
    "docs/kv.md": ["Paris, 21 degrees", '"key":"paris"'],
    "docs/mcp.md": ['"structuredContent":{"ok":true}'],
    "docs/metrics.md": ["threadkeep_http_requests_total"],
    "docs/scopes.md": ['{"value":"Lin","version":1}', '"id":"turn-1"'],
    "docs/webhooks.md": ["whsec_"],
}
# Disables the commands that would start a server, because a server is already running. Makes curl fail on 4xx and 5xx.
PRELUDE = """
set -euo pipefail
cargo() { :; }
docker() { :; }
./test.sh() { :; }
curl() { command curl --fail-with-body "$@" && echo; }
"""
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(command, text, directory, environment):
    done = subprocess.run(
        [*command, text], cwd=directory, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def check_sample():
    """Checks that the page on configuration shows the sample file."""
    blocks = FENCE.findall(pathlib.Path("docs/configuration.md").read_text())
    sample = pathlib.Path("deploy/threadkeep.toml").read_text()
    assert ("toml", sample) in blocks, "docs/configuration.md does not show deploy/threadkeep.toml"


def main(url, api_key):
    check_sample()
    environment = {**os.environ, "API_KEY": api_key}
    for page in [pathlib.Path("README.md"), *sorted(pathlib.Path("docs").glob("*.md"))]:
        text = page.read_text().replace("http://127.0.0.1:8080", url)
        text = text.replace("a-secret-of-32-characters-or-more", api_key)
        blocks = FENCE.findall(text)
        shell = [block for language, block in blocks if language == "sh"]
        if not shell or str(page) in SKIPPED_PAGES:
            continue
        with tempfile.TemporaryDirectory() as directory:
            output = run(["bash", "-c"], PRELUDE + "".join(shell), directory, environment)
        for expected in EXPECTED[str(page)]:
            assert expected in output, f"{page}: {expected} is not in\n{output}"
        print(f"{page}: {len(shell)} blocks")


main(*sys.argv[1:])
