from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.proxy import Proxy
from support.server import API_KEY, Server
from writer import WRITES

from threadkeep import Threadkeep

WRITER = Path(__file__).parent / "writer.py"


def test_two_processes_neither_lose_nor_duplicate_writes(server: Server, proxy: Proxy) -> None:
    client = Threadkeep(server.url, api_key=API_KEY)
    thread = client.threads.create()
    count, lock = 0, threading.Lock()

    def cut_some(request: bytes) -> str | None:
        nonlocal count
        with lock:
            count += 1
            # does not cut the response to a turn request, because the turn would then be held until its lease expires
            takes_turn = request.startswith(b"POST") and b"/turn HTTP" in request
            return "cut" if count % 17 == 0 and not takes_turn else None

    proxy.fault = cut_some
    processes = [
        subprocess.Popen([sys.executable, str(WRITER), proxy.url, thread.id, name], stdin=subprocess.DEVNULL)
        for name in "ab"
    ]
    assert [process.wait(1_200) for process in processes] == [0, 0]

    expected = sorted(f"{name}{n}" for name in "ab" for n in range(WRITES))
    assert sorted(thread.get("pushed")) == expected
    assert sorted(item.value for item in thread.history) == expected
    assert thread.get("counted") == thread.get("guarded") == thread.get("turned") == 2 * WRITES
    client.close()


def test_threads_share_a_client(server: Server) -> None:
    with Threadkeep(server.url, api_key=API_KEY) as client:
        thread = client.threads.create()
        workers = [threading.Thread(target=lambda: [thread.increment("n") for _ in range(50)]) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert thread.get("n") == 400


@pytest.mark.parametrize("proxied", [False, True], ids=["sockets", "httpx"])
def test_a_forked_process_has_its_own_connections(
    server: Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, proxied: bool
) -> None:
    if proxied:  # httpx sends the requests
        monkeypatch.delenv("NO_PROXY")
        monkeypatch.setenv("http_proxy", proxy.url)
    with Threadkeep(server.url, api_key=API_KEY) as client:
        thread = client.threads.create()

        def count(key: str, by: int) -> None:
            assert [thread.increment(key, by) for _ in range(50)] == [by * n for n in range(1, 51)]

        pid = os.fork()
        if not pid:
            status = 1
            try:
                count("child", 1_000)
                status = 0
            finally:
                os._exit(status)
        count("parent", 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert bool(proxy.requests) == proxied
