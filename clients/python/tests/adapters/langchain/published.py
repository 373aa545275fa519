"""Runs the tests of langchain-tests 1.1.9 on the adapter."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from langchain_core.caches import BaseCache
from langchain_core.stores import BaseStore
from langchain_tests.integration_tests import (
    AsyncCacheTestSuite,
    BaseStoreAsyncTests,
    BaseStoreSyncTests,
    SyncCacheTestSuite,
)

from threadkeep.langchain import ThreadkeepByteStore, ThreadkeepCache


class Bytes:
    @pytest.fixture
    def kv_store(self) -> Iterator[BaseStore[str, bytes]]:
        with ThreadkeepByteStore(prefix=uuid.uuid4().hex[:20]) as store:
            yield store

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return b"one", b"", b"\0\xff"


class TestBytes(Bytes, BaseStoreSyncTests[bytes]):
    pass


class TestAsyncBytes(Bytes, BaseStoreAsyncTests[bytes]):
    pass


class Cache:
    @pytest.fixture
    def cache(self) -> Iterator[BaseCache]:
        with ThreadkeepCache(prefix=uuid.uuid4().hex[:20]) as cache:
            yield cache


class TestCache(Cache, SyncCacheTestSuite):
    pass


class TestAsyncCache(Cache, AsyncCacheTestSuite):
    pass
