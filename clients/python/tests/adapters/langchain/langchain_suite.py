"""Counts the tests of langchain-tests 1.1.9, as a pytest plugin."""

from __future__ import annotations

import pytest
from support.suite import Part, Suite


def pytest_configure(config: pytest.Config) -> None:
    tests = Part("stores of bytes and caches", ("test_published.py",), lambda name: True, expected=40)
    config.pluginmanager.register(Suite("langchain-tests 1.1.9", tests))
