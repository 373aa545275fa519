"""Runs the tests of strands-agents 1.62.0 on the adapters, as a pytest plugin."""

from __future__ import annotations

import asyncio
import sys
import threading
import types
from typing import Any

import pytest
import strands.storage
import strands.storage.in_memory_storage
from strands.storage.storage import _EPHEMERAL
from support.adapters import unique
from support.suite import Part, Suite

from threadkeep._adapter import digest
from threadkeep.strands import ThreadkeepSessionRepository, ThreadkeepStorage


class InMemoryStorage(ThreadkeepStorage):
    """Takes the same arguments as InMemoryStorage. Each object has its own store."""

    _ephemeral = _EPHEMERAL

    def __init__(self, *, search_strategy: Any = None) -> None:
        super().__init__(unique()[:20], search_strategy=search_strategy)

    def clear(self) -> None:  # type: ignore[override]
        thread = threading.Thread(target=lambda: asyncio.run(ThreadkeepStorage.clear(self)))
        thread.start()
        thread.join()


class LocalFileStorage(ThreadkeepStorage):
    """Takes the same arguments as LocalFileStorage. Each directory has its own store."""

    def __init__(self, base_dir: str) -> None:
        super().__init__(digest(base_dir)[:20])


class MockedSessionRepository(ThreadkeepSessionRepository):
    def __init__(self) -> None:
        super().__init__(prefix=unique()[:20])


def pytest_configure(config: pytest.Config) -> None:
    strands.storage.InMemoryStorage = strands.storage.in_memory_storage.InMemoryStorage = InMemoryStorage  # type: ignore
    strands.storage.LocalFileStorage = LocalFileStorage  # type: ignore
    repository = types.ModuleType("tests.fixtures.mock_session_repository")
    repository.MockedSessionRepository = MockedSessionRepository  # type: ignore
    sys.modules[repository.__name__] = repository

    session, storage = "tests/strands/session", "tests/strands/storage"
    suite = Suite(
        "strands-agents 1.62.0",
        Part("repository", (f"{session}/test_repository_session_manager.py",), lambda name: True, expected=51),
        Part("snapshots", (f"{session}/test_snapshot_session_manager.py",), lambda name: True, expected=117),
        Part("storage", (f"{storage}/test_in_memory_storage.py",), lambda name: True, expected=23),
    )
    config.pluginmanager.register(suite)
