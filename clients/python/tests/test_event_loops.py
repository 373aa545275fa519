from __future__ import annotations

import asyncio
import gc
import sys
import threading

from support.proxy import Proxy
from support.server import API_KEY, Server
from support.threads import run_all

from threadkeep import AsyncThreadkeep
from threadkeep._http.limits import MAX_CONNECTIONS


def test_a_client_serves_event_loops_in_sequence(server: Server) -> None:
    client = AsyncThreadkeep(server.url, api_key=API_KEY)
    thread = client.thread(asyncio.run(client.threads.create()).id)  # type: ignore[arg-type]
    assert [asyncio.run(thread.increment("n")) for _ in range(5)] == [1, 2, 3, 4, 5]  # type: ignore[arg-type]
    gc.collect()
    assert len(client._runner.transport._senders) <= 1
    asyncio.run(client.close())


def test_a_client_serves_concurrent_event_loops(server: Server) -> None:
    client = AsyncThreadkeep(server.url, api_key=API_KEY)
    id = asyncio.run(client.threads.create()).id  # type: ignore[arg-type]

    async def work() -> None:
        await asyncio.gather(*(client.thread(id).push("l", n) for n in range(50)))

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(4)]
    run_all(threads)
    assert len(asyncio.run(client.thread(id).get("l"))) == 200  # type: ignore[arg-type]
    asyncio.run(client.close())


def test_a_client_serves_short_lived_concurrent_loops(server: Server) -> None:
    client = AsyncThreadkeep(server.url, api_key=API_KEY)
    failures: list[BaseException] = []

    async def begin() -> None:
        client._runner.transport._sender()

    def work() -> None:
        try:
            for _ in range(200):
                asyncio.run(begin())
        except BaseException as failure:
            failures.append(failure)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        run_all(threading.Thread(target=work) for _ in range(4))
    finally:
        sys.setswitchinterval(interval)
    assert failures == []


async def test_many_concurrent_calls_share_a_bounded_number_of_connections(proxy: Proxy) -> None:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        thread = await client.threads.create()
        most_open = 0

        def count(request: bytes) -> None:
            nonlocal most_open
            most_open = max(most_open, proxy.open_connections)

        proxy.fault = count
        await asyncio.gather(*(thread.increment("n") for _ in range(500)))
        assert await thread.get("n") == 500
        assert 1 < most_open <= MAX_CONNECTIONS
