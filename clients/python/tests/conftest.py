from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.portal import Portal
from support.proxy import Proxy
from support.server import API_KEY, HOST, Redis, Server

from threadkeep import AsyncThreadkeep, Threadkeep

Connect = Callable[..., Threadkeep]


@pytest.fixture(scope="session", autouse=True)
def environment() -> None:
    for name in ("THREADKEEP_URL", "THREADKEEP_API_KEY"):
        os.environ.pop(name, None)
    os.environ["NO_PROXY"] = f"127.0.0.1,{HOST}"


@pytest.fixture(scope="session")
def redis() -> Iterator[Redis | None]:
    if os.environ.get("STORE") != "redis":
        yield None
        return
    with tempfile.TemporaryDirectory() as directory:  # not `tmp_path`, which is too long for a socket
        redis = Redis(Path(directory))
        yield redis
        redis.stop()


@pytest.fixture(scope="session")
def server(redis: Redis | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"), redis)
    yield server
    server.stop()


@pytest.fixture
def own_server(redis: Redis | None, tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, redis)
    yield server
    server.stop()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    proxy = Proxy(server.url)
    yield proxy
    proxy.close()


@pytest.fixture(params=["blocking", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Creates blocking clients, or async clients behind blocking methods."""
    clients: list[Any] = []
    portal = Portal()

    def connect(url: str, *, api_key: str | None = API_KEY, **settings: Any) -> Threadkeep:
        if request.param == "blocking":
            client = Threadkeep(url, api_key=api_key, **settings)
        else:
            client = portal.blocking(AsyncThreadkeep(url, api_key=api_key, **settings))
        clients.append(client)
        return client

    yield connect
    for client in clients:
        client.close()
    portal.stop()


@pytest.fixture
def tk(connect: Connect, server: Server) -> Threadkeep:
    return connect(server.url)
