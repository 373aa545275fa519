from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from support.proxy import Proxy
from support.server import API_KEY, wait_until

from threadkeep._dual import DualConnection
from threadkeep._flows import keys


def test_a_busy_connection_closes_after_its_response(connect: Any, proxy: Proxy) -> None:
    client = connect(proxy.url)
    is_closed = threading.Event()
    proxy.fault = lambda request: None if is_closed.wait() else b""
    call = threading.Thread(target=client.api_key)
    call.start()
    wait_until(lambda: proxy.requests)
    client.close()
    is_closed.set()
    call.join()
    wait_until(lambda: not proxy.open_connections)


def test_a_stopped_loop_closes_its_connections_when_it_runs_again(proxy: Proxy) -> None:
    loop = asyncio.new_event_loop()
    connection = DualConnection(None, proxy.url, API_KEY)
    loop.run_until_complete(connection.arun(keys.current(connection.root)))
    connection.close()
    assert proxy.open_connections == 1
    loop.run_until_complete(asyncio.to_thread(wait_until, lambda: not proxy.open_connections))
    loop.close()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # connections outlive a loop that is closed without them
def test_a_closed_loop_causes_no_warnings(proxy: Proxy, recwarn: pytest.WarningsRecorder) -> None:
    loop = asyncio.new_event_loop()
    connection = DualConnection(None, proxy.url, API_KEY)
    loop.run_until_complete(connection.arun(keys.current(connection.root)))
    connection.close()
    loop.close()
    connection.close()
    gc.collect()
    assert not [warning for warning in recwarn if "never awaited" in str(warning.message)]
