"""Proxies that compress bodies weaken ETags (nginx with `gzip on`), and some remove them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.proxy import Proxy
from support.server import API_KEY

from threadkeep import AsyncThreadkeep, Threadkeep, ThreadkeepError, VersionMismatch
from threadkeep._adapter import MAX_ATTEMPTS, attempts, tag_of


def weaken(response: bytes) -> bytes:
    return re.sub(rb'(?i)\r\netag: "', b'\r\netag: W/"', response)


@pytest.fixture
def weakened(connect: Any, proxy: Proxy) -> Threadkeep:
    proxy.alter = weaken
    return connect(proxy.url)  # type: ignore[no-any-return]


def test_conditional_writes_work_behind_a_proxy_that_weakens_tags(weakened: Threadkeep) -> None:
    thread = weakened.threads.create()
    receipt = thread.set("a", 1, if_match=thread.info().etag)
    thread.set("b", 2)
    with pytest.raises(VersionMismatch):
        thread.set("a", 3, if_match=receipt.etag)
    thread.update(metadata={"a": 1}, if_match=thread.info().etag)
    checkpoint = thread.checkpoints.create().checkpoint
    thread.set("c", 1, if_match=thread.checkpoints.restore(checkpoint).etag)
    assert thread.state() == {"a": 1, "b": 2, "c": 1}


def test_entries_work_behind_a_proxy_that_weakens_tags(weakened: Threadkeep) -> None:
    entries = weakened.kv(f"weak-{id(weakened)}")
    receipt = entries.put("k", b"1")
    entries.put("k", b"2", if_match=receipt.etag)
    with pytest.raises(VersionMismatch):
        entries.put("k", b"3", if_match=receipt.etag)
    entry = entries.get("k")
    assert entry and entry.body == b"2"
    assert entries.delete("k", if_match=entry.etag)


async def test_a_removed_tag_becomes_the_version_if_the_server_sends_it(proxy: Proxy) -> None:
    proxy.alter = lambda response: re.sub(rb'(?i)\r\netag: "([0-9]+)[^\r]*', rb"\r\nx-thread-version: \1", response)
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        thread = await client.threads.create()
        first = await thread.set("a", 1)
        await thread.set("a", 2, if_match=first.etag)
        with pytest.raises(VersionMismatch):
            await thread.set("a", 3, if_match=first.etag)


def test_adapters_never_write_without_their_condition() -> None:
    with pytest.raises(ThreadkeepError, match="proxy"):
        tag_of(None)


def test_attempts_of_adapters_end_with_the_reason() -> None:
    tried = 0
    with pytest.raises(ThreadkeepError, match="proxy before the server alters ETags"):
        for _ in attempts():
            tried += 1
    assert tried == MAX_ATTEMPTS
