"""Runs the scripted upstream for checks with packages of model providers. The first argument is the upstream's path."""

import contextlib
import json
import subprocess
import sys
import tempfile
import urllib.request

[PROGRAM] = sys.argv[1:]
ANSWER = {"text": "It is 1, and not ä.", "reasoning": "I count."}
CALLS = {"calls": [{"name": "kv_increment", "arguments": json.dumps({"key": key})} for key in ("a/n", "a/m")]}


@contextlib.contextmanager
def upstream(*replies, faults=(), path="/v1"):
    """Runs the scripted upstream with `replies`. Yields arguments to construct a client. At the end, asserts that the
    upstream found exactly `faults` in the requests.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".json") as script:
        json.dump(replies, script)
        script.flush()
        with subprocess.Popen([PROGRAM, script.name], stdout=subprocess.PIPE, text=True) as process:
            try:
                url, key = (process.stdout.readline().strip() for _ in range(2))
                root = url.removesuffix("/v1")
                yield {"base_url": f"{root}{path}", "api_key": key, "max_retries": 0}
                with urllib.request.urlopen(f"{root}/faults") as found:
                    found = json.load(found)
                    assert found == list(faults), found
            finally:
                process.kill()


def fails(error, call):
    try:
        call()
    except error as found:
        assert type(found) is error, found
        return found
    raise AssertionError(f"no {error.__name__}")


def check_all(package, checks):
    """Runs all functions whose names begin with check_."""
    checks = [check for name, check in checks.items() if name.startswith("check_") and name != "check_all"]
    for check in checks:
        check()
    print(f"{PROGRAM}: {len(checks)} checks by {package.__name__} {package.__version__}")
