"""Tests proxies that change ETags. With compression, nginx weakens ETags, and Apache extends them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.proxy import Proxy
from support.server import API_KEY

from threadkeep import AsyncThreadkeep, Threadkeep, ThreadkeepError, VersionMismatch
from threadkeep._adapter import MAX_ATTEMPTS, attempts, tag_of

ETAG = rb'(?i)\r\netag: "([^"]*)"'


@pytest.fixture(
    params=[rb'W/"\1"', rb'"\1-gzip"', rb'W/"\1;br"', b'"1-altered"'], ids=["weakened", "suffixed", "both", "replaced"]
)
def altered(connect: Any, proxy: Proxy, request: pytest.FixtureRequest) -> Threadkeep:
    proxy.alter = lambda response: re.sub(ETAG, b"\r\netag: " + request.param, response)
    return connect(proxy.url)  # type: ignore[no-any-return]


def test_conditional_writes_work_behind_a_proxy_that_alters_tags(altered: Threadkeep) -> None:
    thread = altered.threads.create()
    receipt = thread.set("a", 1, if_match=thread.info().etag)
    thread.set("b", 2)
    with pytest.raises(VersionMismatch):
        thread.set("a", 3, if_match=receipt.etag)
    thread.configure(metadata={"a": 1}, if_match=thread.info().etag)
    checkpoint = thread.checkpoints.create().checkpoint
    thread.set("c", 1, if_match=thread.checkpoints.restore(checkpoint).etag)
    assert thread.read() == {"a": 1, "b": 2, "c": 1}


def test_entries_work_behind_a_proxy_that_alters_tags(altered: Threadkeep) -> None:
    entries = altered.kv(f"weak-{id(altered)}")
    receipt = entries.put("k", b"1")
    entries.put("k", b"2", if_match=receipt.etag)
    with pytest.raises(VersionMismatch):
        entries.put("k", b"3", if_match=receipt.etag)
    entry = entries.get("k")
    assert entry and entry.body == b"2"
    assert entries.delete("k", if_match=entry.etag)


async def test_the_version_replaces_a_removed_tag(proxy: Proxy) -> None:
    proxy.alter = lambda response: re.sub(rb'(?i)\r\netag: "([0-9]+)[^\r]*', rb"\r\nx-thread-version: \1", response)
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        thread = await client.threads.create()
        first = await thread.set("a", 1)
        await thread.set("a", 2, if_match=first.etag)
        with pytest.raises(VersionMismatch):
            await thread.set("a", 3, if_match=first.etag)


def test_adapters_reject_a_missing_tag() -> None:
    with pytest.raises(ThreadkeepError, match="proxy"):
        tag_of(None)


def test_exhausted_attempts_name_the_reason() -> None:
    tried = 0
    with pytest.raises(ThreadkeepError, match="proxy in front of the server alters ETags"):
        for _ in attempts():
            tried += 1
    assert tried == MAX_ATTEMPTS
