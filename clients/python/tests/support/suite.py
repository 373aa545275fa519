"""Parts of a pytest plugin that runs a framework's published tests on an adapter."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.server import API_KEY, Redis, Server


@dataclass
class Part:
    """Test files to run, and how many of their tests must pass. Skips tests for which `applies` returns False."""

    name: str
    files: tuple[str, ...]
    applies: Callable[[str], bool]
    expected: int
    not_applicable: int = 0
    reason: str = ""


class Suite:
    """Starts a server, sets the clients' environment variables, skips tests that do not apply, and counts passes."""

    def __init__(self, framework: str, *parts: Part) -> None:
        self._framework = framework
        self._parts = parts
        self._left_out: Counter[str] = Counter()
        self._passed: Counter[str] = Counter()
        self._resources = ExitStack()

    def pytest_configure(self) -> None:
        self._resources.enter_context(server_in_environment())

    def pytest_unconfigure(self) -> None:
        self._resources.close()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept, left_out = [], []
        for item in items:
            part = self._part_of(item.nodeid)
            applies = part.applies(getattr(item, "originalname", item.name))
            (kept if applies else left_out).append(item)
            self._left_out[part.name] += not applies
        items[:] = kept
        config.hook.pytest_deselected(items=left_out)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._passed[self._part_of(report.nodeid).name] += report.when == "call" and report.passed

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not session.exitstatus and not all(self._is_complete(part) for part in self._parts):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for part in self._parts:
            line = f"suite: {self._framework} {part.name}: {self._passed[part.name]} passed"
            if self._left_out[part.name]:
                line += f", {self._left_out[part.name]} not applicable ({part.reason})"
            if not self._is_complete(part):
                line += f"; expected {part.expected} and {part.not_applicable}"
            terminalreporter.write_line(line)

    def _part_of(self, nodeid: str) -> Part:
        file = nodeid.partition("::")[0]
        return next(part for part in self._parts if file in part.files)

    def _is_complete(self, part: Part) -> bool:
        return (self._passed[part.name], self._left_out[part.name]) == (part.expected, part.not_applicable)


@contextmanager
def server_in_environment() -> Iterator[None]:
    """Starts a server with the store that `STORE` names, and sets the environment variables that clients read."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        redis = None
        if os.environ.get("STORE") == "redis":
            redis = Redis(Path(directory))
            stack.callback(redis.stop)
        server = Server(Path(directory), redis)
        stack.callback(server.stop)
        os.environ.update(THREADKEEP_URL=server.url, THREADKEEP_API_KEY=API_KEY)
        yield
