from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.proxy import Proxy
from support.server import API_KEY, Server, wait_until

from threadkeep import AsyncThreadkeep, InvalidRequest, Threadkeep, VersionMismatch
from threadkeep._dual import DualConnection, collected, together
from threadkeep._flow import Flow
from threadkeep._flows.namespaces import get, get_many, keys, put
from threadkeep._resource import Resource


def try_put(resource: Resource, key: str) -> Flow[str]:
    try:
        yield from put(resource, key, b"", if_absent=True)
    except VersionMismatch:
        return f"{key} exists"
    return f"put {key}"


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
@pytest.mark.parametrize("count", [1, 2, 12])
def test_concurrent_flows_return_the_results_of_single_flows(server: Server, is_async: bool, count: int) -> None:
    connection = DualConnection(None, server.url, API_KEY)
    resource = connection.namespace(f"n{time.time_ns()}")
    run = (lambda flow: asyncio.run(connection.arun(flow))) if is_async else connection.run
    names = [str(n) for n in range(count)]
    run(put(resource, "0", b""))
    assert run(together([try_put(resource, name) for name in names])) == [
        "0 exists",
        *(f"put {name}" for name in names[1:]),
    ]
    found: Any = run(together([get_many(resource, names), collected(keys(resource), lambda info: info.key != "0", 3)]))
    assert sorted(found[0]) == sorted(names)
    assert [info.key for info in found[1]] == sorted(names[1:])[:3]
    with pytest.raises(VersionMismatch):
        run(together([get(resource, "0"), put(resource, "0", b"", if_absent=True)]))
    assert run(together([])) == []
    connection.close()


async def test_additional_connections_have_the_settings_of_the_client(server: Server) -> None:
    async with AsyncThreadkeep(server.url, api_key=API_KEY, timeout=60, max_retries=0) as client:
        connection = DualConnection(client, None, None)
        assert connection._blocking.transport.limits == (60, 0)
        assert await asyncio.to_thread(connection.run, get(connection.namespace("none"), "key")) is None
        await connection.aclose()
        assert (await client.api_key()).name == "ops"
    with Threadkeep(server.url, api_key=API_KEY, timeout=60) as blocking:
        connection = DualConnection(blocking, None, None)
        assert connection._async.transport.limits == (60, None)
        connection.close()
        assert blocking.api_key().name == "ops"


BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"


class Deletions:
    """Deletes entries concurrently. The first deletion fails, and the other deletions wait until `released` is set."""

    def __init__(self, proxy: Proxy, client: AsyncThreadkeep, count: int) -> None:
        self.released = threading.Event()
        self.performed = 0
        self._client = client
        self._proxy = proxy
        proxy.fault = self._fault
        resource = Resource("/v1/kv/none", client._resource.headers)
        self.call = asyncio.ensure_future(client._runner.run(self._flow(resource, count)))

    def _flow(self, resource: Resource, count: int) -> Flow[None]:
        yield [resource.write("DELETE", f"/{n}") for n in range(count)]

    def _fault(self, request: bytes) -> bytes | None:
        if request.startswith(b"DELETE /v1/kv/none/0 "):
            return BAD_REQUEST
        if request.startswith(b"DELETE"):
            self.released.wait()
            self.performed += 1
        return None

    @property
    def sent(self) -> int:
        return sum(request.startswith(b"DELETE") for request in self._proxy.requests)

    async def wait_for_failure(self, sent: int) -> None:
        """Waits until the client has sent `sent` deletions and has received the failure."""
        await asyncio.to_thread(wait_until, lambda: self.sent >= sent)
        await self._client.api_key()
        await self._client.api_key()


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[AsyncThreadkeep]:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        yield client


async def test_a_call_fails_only_after_all_its_requests_have_ended(proxy: Proxy, client: AsyncThreadkeep) -> None:
    deletions = Deletions(proxy, client, 20)
    await deletions.wait_for_failure(sent=8)
    assert not deletions.call.done()
    deletions.released.set()

    with pytest.raises(InvalidRequest):
        await deletions.call
    assert (deletions.sent, deletions.performed) == (8, 7)


async def test_a_failing_call_can_be_cancelled(proxy: Proxy, client: AsyncThreadkeep) -> None:
    deletions = Deletions(proxy, client, 8)
    await deletions.wait_for_failure(sent=8)
    deletions.call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await deletions.call
    assert asyncio.all_tasks() == {asyncio.current_task()}
    deletions.released.set()
