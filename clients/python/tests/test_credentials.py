"""Tests that each kind of credential takes precedence over the environment."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.proxy import Proxy, header_of
from support.server import API_KEY, Redis, Server

from threadkeep import AsyncThreadkeep, Forbidden, Threadkeep, Unauthorized

SECRET = "a-secret-of-the-issuer-that-is-long-enough"
CLIENTS = pytest.mark.parametrize("client", [Threadkeep, AsyncThreadkeep])


@pytest.fixture(scope="module")
def server_with_logins(redis: Redis | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory: Path = tmp_path_factory.mktemp("logins")
    key = directory / "issuer"
    key.write_text(SECRET)
    server = Server(directory, redis, owner="jwt", identity_jwt_key_file=str(key))
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets an API key that clients must not use here, because the key gives access to the threads of all users."""
    monkeypatch.setenv("THREADKEEP_API_KEY", API_KEY)


def login_of(user: str) -> str:
    def part(value: bytes) -> str:
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

    claims = {"sub": user, "exp": int(time.time()) + 3_600}
    signed = ".".join(part(json.dumps(value).encode()) for value in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{signed}.{part(hmac.new(SECRET.encode(), signed.encode(), hashlib.sha256).digest())}"


def unique(name: str) -> str:
    return f"{name} {time.time_ns()}"


def sent(client: Any, proxy: Proxy) -> str | None:
    next(iter(client.threads.list()), None)
    return header_of(proxy.requests[-1], "authorization")


def test_a_login_sees_only_the_threads_of_its_user(connect: Any, server_with_logins: Server) -> None:
    ada, bob = unique("ada"), unique("bob")
    of_ada, of_bob = (connect(server_with_logins.url, api_key=None, token=login_of(user)) for user in (ada, bob))
    thread = of_ada.threads.create(state={"a": 1})
    of_bob.threads.create()

    assert [info.id for info in of_ada.threads.list()] == [thread.id]
    assert thread.get("a") == 1
    with pytest.raises(Forbidden):
        of_bob.current(thread.signed_id).read()
    with pytest.raises(Unauthorized):  # the signed ID alone is not enough here, and the client adds no API key
        connect(server_with_logins.url).current(thread.signed_id).read()


def test_forked_and_rotated_threads_keep_the_login(connect: Any, server_with_logins: Server) -> None:
    user = unique("ada")
    client = connect(server_with_logins.url, api_key=None, token=login_of(user))
    thread = client.current(client.threads.create().signed_id)
    thread.push("l", 1)
    fork = thread.fork()
    fork.push("l", 2)
    with thread.turn() as turn:
        moved = turn.thread.rotate()
    moved.push("l", 3)
    assert (fork.get("l"), moved.get("l")) == ([1, 2], [1, 3])
    assert {info.owner for info in client.threads.list()} == {user}


@pytest.mark.parametrize("passed", [{"token": "of-a-user"}, {"api_key": "of-the-caller"}])
def test_a_passed_credential_overrides_the_environment(connect: Any, proxy: Proxy, passed: dict[str, str]) -> None:
    proxy.fault = lambda request: b'HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{"threads":[]}'
    assert sent(connect(proxy.url, **{"api_key": None, **passed}), proxy) == f"Bearer {next(iter(passed.values()))}"
    assert sent(connect(proxy.url, api_key=None), proxy) == f"Bearer {API_KEY}"


@pytest.mark.parametrize(
    "credential",
    [{"headers": {"Authorization": "Bearer of-a-user"}}, {"auth": lambda request: set_login(request)}],
    ids=["header", "auth"],
)
def test_the_credential_of_an_httpx_client_overrides_the_environment(proxy: Proxy, credential: dict[str, Any]) -> None:
    proxy.fault = lambda request: b'HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{"threads":[]}'
    with httpx.Client(**credential) as http, Threadkeep(proxy.url, http_client=http) as client:
        assert sent(client, proxy) == "Bearer of-a-user"


def set_login(request: httpx.Request) -> httpx.Request:
    request.headers["authorization"] = "Bearer of-a-user"
    return request


def test_an_httpx_client_with_a_login_sees_the_threads_of_its_user(server_with_logins: Server) -> None:
    user = unique("ada")
    with httpx.Client(headers={"authorization": f"Bearer {login_of(user)}"}) as http:
        with Threadkeep(server_with_logins.url, http_client=http) as client:
            thread = client.threads.create()
            thread.fork().push("l", 1)
            assert thread.id in [info.id for info in client.threads.list()]
            assert {info.owner for info in client.threads.list()} == {user}


@CLIENTS
def test_a_token_excludes_an_api_key(client: Callable[..., object]) -> None:
    with_header = httpx.Client(headers={"authorization": "Bearer x"})
    for credentials in (
        {"token": "a", "api_key": "b"},
        {"token": "a", "http_client": with_header},
        {"api_key": "a", "http_client": with_header},
    ):
        with pytest.raises(TypeError, match="one credential"):
            client(**credentials)


@CLIENTS
def test_an_empty_or_missing_credential_is_rejected(client: Callable[..., object]) -> None:
    for credential in ({"token": ""}, {"api_key": ""}):
        with pytest.raises(ValueError, match="is empty"):
            client(**credential)
    with pytest.raises(TypeError, match="token is None"):
        client(token=None)
