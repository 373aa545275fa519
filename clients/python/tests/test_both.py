"""Flows that adapters combine."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from support.server import API_KEY, Server

from threadkeep import AsyncThreadkeep, Threadkeep, VersionMismatch
from threadkeep._both import BothConnection, collected, together
from threadkeep._flow import Flow
from threadkeep._flows.namespaces import get, get_many, keys, put
from threadkeep._place import Place


def put_or_not(place: Place, key: str) -> Flow[str]:
    """A flow that handles an error of its own."""
    try:
        yield from put(place, key, b"", if_absent=True)
    except VersionMismatch:
        return f"{key} was there"
    return f"put {key}"


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
@pytest.mark.parametrize("count", [1, 2, 12])
def test_flows_run_together_as_if_each_were_alone(server: Server, is_async: bool, count: int) -> None:
    connection = BothConnection(None, server.url, API_KEY)
    place = connection.namespace(f"n{time.time_ns()}")
    run = (lambda flow: asyncio.run(connection.arun(flow))) if is_async else connection.run
    names = [str(n) for n in range(count)]
    run(put(place, "0", b""))
    assert run(together([put_or_not(place, name) for name in names])) == [
        "0 was there",
        *(f"put {name}" for name in names[1:]),
    ]
    found: Any = run(together([get_many(place, names), collected(keys(place), lambda info: info.key != "0", 3)]))
    assert sorted(found[0]) == sorted(names)
    assert [info.key for info in found[1]] == sorted(names[1:])[:3]
    with pytest.raises(VersionMismatch):
        run(together([get(place, "0"), put(place, "0", b"", if_absent=True)]))
    assert run(together([])) == []
    connection.close()


async def test_the_other_half_has_the_settings_of_a_client(server: Server) -> None:
    async with AsyncThreadkeep(server.url, api_key=API_KEY, timeout=3, max_retries=0) as client:
        connection = BothConnection(client, None, None)
        assert connection._blocking.transport.limits == (3, 0)
        assert await asyncio.to_thread(connection.run, get(connection.namespace("none"), "key")) is None
        await connection.aclose()
        assert (await client.api_key()).name == "ops"
    with Threadkeep(server.url, api_key=API_KEY, timeout=3) as blocking:
        connection = BothConnection(blocking, None, None)
        assert connection._async.transport.limits == (3, 2)
        connection.close()
        assert blocking.api_key().name == "ops"
