"""Runs the tests of openai-agents 0.24.0 on ThreadkeepSession, as a pytest plugin."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import agents
import agents.extensions.memory.redis_session
import agents.memory.sqlite_session
import pytest
from support.suite import Part, Suite

from threadkeep._adapter import digest
from threadkeep.openai_agents import ThreadkeepSession

numbers = itertools.count()


def store_prefix(*names: str) -> str:
    return digest(*names)[:20]


class SQLiteSession(ThreadkeepSession):
    """Takes the same arguments as SQLiteSession. Each in-memory database is separate."""

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", **settings: Any) -> None:
        store = f"memory {next(numbers)}" if db_path == ":memory:" else str(db_path)
        super().__init__(session_id, prefix=store_prefix("sqlite", store), **settings)

    def close(self) -> None:  # type: ignore[override]
        """Does nothing, because the tests do not await this method."""


class RedisSession(ThreadkeepSession):
    def __init__(
        self,
        session_id: str,
        *,
        redis_client: Any,
        key_prefix: str = "agents:session",
        ttl: None = None,
        **settings: Any,
    ) -> None:
        super().__init__(session_id, prefix=store_prefix("redis", key_prefix), **settings)


USES_SQLITE_INTERNALS = {
    "test_sqlite_session_close_closes_worker_thread_connections",
    "test_sqlite_session_reaps_connections_from_exited_worker_threads",
    "test_sqlite_session_closes_retired_connections_before_the_next_allocation",
    "test_sqlite_session_keeps_connections_of_live_worker_threads",
    "test_sqlite_session_closed_rejects_empty_add_items",
    "test_sqlite_session_pop_item_skips_corrupt_most_recent",
    "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows",
    "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows",
    "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows",
    "test_sqlite_session_file_lock_is_shared_across_instances",
    "test_sqlite_session_failed_add_items_releases_write_lock",
    "test_sqlite_session_failed_clear_session_rolls_back",
    "test_sqlite_session_failed_pop_item_releases_write_lock",
    "test_sqlite_session_rollback_failure_evicts_connection",
    "test_sqlite_session_close_retries_quarantined_connection",
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome",
}

USES_NO_REDIS_INTERNALS = {
    "test_redis_session_direct_ops",
    "test_runner_integration",
    "test_session_isolation",
    "test_get_items_with_limit",
    "test_pop_from_empty_session",
    "test_add_empty_items_list",
    "test_unicode_content",
    "test_special_characters_and_json_safety",
    "test_data_integrity_with_problematic_strings",
    "test_concurrent_access",
    "test_key_prefix_isolation",
    "test_get_items_limit_returns_fewer_when_history_exhausted",
    "test_session_settings_default",
    "test_session_settings_constructor",
    "test_get_items_uses_session_settings_limit",
    "test_get_items_explicit_limit_overrides_session_settings",
    "test_runner_with_session_settings_override",
}


def pytest_configure(config: pytest.Config) -> None:
    agents.SQLiteSession = agents.memory.sqlite_session.SQLiteSession = SQLiteSession  # type: ignore[misc, assignment]
    agents.extensions.memory.redis_session.RedisSession = RedisSession  # type: ignore[misc, assignment]
    suite = Suite(
        "openai-agents 0.24.0",
        Part(
            "sessions",
            (
                "tests/memory/test_session.py",
                "tests/memory/test_session_limit.py",
                "tests/memory/test_session_context_wrapper.py",
                "tests/test_hitl_session_scenario.py",
            ),
            lambda name: name not in USES_SQLITE_INTERNALS,
            expected=70,
            not_applicable=18,
            reason="use SQLite internals",
        ),
        Part(
            "redis sessions",
            ("tests/extensions/memory/test_redis_session.py",),
            lambda name: name in USES_NO_REDIS_INTERNALS,
            expected=18,
            not_applicable=92,
            reason="use Redis internals",
        ),
    )
    config.pluginmanager.register(suite)
