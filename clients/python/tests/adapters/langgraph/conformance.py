"""Runs the tests of langgraph-checkpoint-conformance on ThreadkeepSaver."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from importlib.metadata import version

from langgraph.checkpoint.conformance import checkpointer_test, validate
from support.suite import server_in_environment

from threadkeep.langgraph import ThreadkeepSaver

EXPECTED = 81
PACKAGE = "langgraph-checkpoint-conformance"


@checkpointer_test(name="ThreadkeepSaver")
async def checkpointer() -> AsyncIterator[ThreadkeepSaver]:
    async with ThreadkeepSaver() as saver:
        yield saver


if __name__ == "__main__":
    with server_in_environment():
        report = asyncio.run(validate(checkpointer))
    failures = [failure for result in report.results.values() for failure in result.failures]
    failures += [f"{name} is not detected" for name, result in report.results.items() if not result.detected]
    passed = sum(result.tests_passed for result in report.results.values())
    print(f"suite: {PACKAGE} {version(PACKAGE)}: {passed} passed, {len(report.results)} capabilities")
    if failures or passed != EXPECTED:
        sys.exit("\n".join([*failures, f"{EXPECTED} tests have to pass."]))
