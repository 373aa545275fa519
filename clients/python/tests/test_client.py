from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import httpx
import pytest
from support.proxy import Proxy
from support.server import API_KEY, Server

import threadkeep
from threadkeep import (
    AsyncThreadkeep,
    AsyncTurn,
    Forbidden,
    InvalidRequest,
    ServerError,
    Threadkeep,
    TransportError,
    Turn,
    Unauthorized,
)
from threadkeep._flows.turns import Grant
from threadkeep._http.message import Response


def test_the_settings_of_the_server_are_read_without_secrets(tk: Threadkeep) -> None:
    settings = {setting.name: setting for setting in tk.settings()}
    assert settings["thread_ttl_seconds"].default == "3600"
    assert API_KEY not in repr(settings)


def test_settings_come_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THREADKEEP_URL", server.url + "/")
    monkeypatch.setenv("THREADKEEP_API_KEY", API_KEY)
    with Threadkeep() as client:
        key = client.api_key()
    assert (key.name, key.rights) == ("ops", ["all"])


def test_server_statistics_name_busy_threads(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    for _ in range(50):
        thread.set("k", 1)
    busiest = tk.stats()["threads"]["by_writes"]
    assert thread.id in [busy["thread_id"] for busy in busiest]


def test_secrets_are_never_shown(connect: Any, tk: Threadkeep, server: Server) -> None:
    thread = tk.threads.create()
    signed = thread.signed_id
    assert signed
    signature = signed.partition(";")[2]
    same = connect(server.url).current(signed)
    with pytest.raises(Unauthorized) as raised:
        connect(server.url, api_key="a-wrong-key-that-nobody-has").thread(thread.id).info()
    shown = f"{tk!r} {thread!r} {same!r} {thread.info()!r} {raised.value!r} {raised.value}"
    with thread.turn() as turn:
        shown += repr(turn)
        assert turn.token not in shown
    assert not any(secret in shown for secret in (API_KEY, signature, "a-wrong-key"))
    assert server.url in repr(tk)


@pytest.mark.parametrize("separator", [";", "."])  # the separator in headers, and in cookies
def test_a_signed_id_passed_as_an_id_is_neither_shown_nor_sent(connect: Any, proxy: Proxy, separator: str) -> None:
    tk = connect(proxy.url)
    thread = tk.thread(f"thrd_{'x' * 32}{separator}SIG/N%A")
    with pytest.raises(InvalidRequest) as raised:
        thread.info()
    grant = Grant("token", 1, 0)
    turns = Turn(thread, grant, Any), AsyncTurn(thread, grant, Any)  # type: ignore[arg-type]
    shown = f"{thread!r} {tk.scope('thread:thrd_x;SIG')!r} {tk.current('thrd_x.SIG')!r} {turns!r} {raised.value!r}"
    assert shown.count("thrd_x") == 5
    assert "SIG" not in shown
    assert b"SIG" not in proxy.requests[0]


def test_requests_and_responses_show_no_secrets() -> None:
    request = Threadkeep(api_key=API_KEY)._resource.write("POST", "/v1/threads", b"secret")
    assert API_KEY in str(request.headers)
    assert repr(request) == "Request(POST)"
    assert repr(Response(200, {"x-thread-id": "thrd_x;SIG"}, b"secret")) == "Response(200)"


def test_an_error_has_all_members_of_the_problem(tk: Threadkeep) -> None:
    with pytest.raises(InvalidRequest) as raised:
        tk.thread("nonsense").read()
    error = raised.value
    assert (error.status, error.code) == (400, "invalid_thread_id")
    assert error.request_id and error.request_id.startswith("sess_")
    assert str(error) == f"400 invalid_thread_id: {error.detail}"
    assert error.problem["title"] == "Bad Request"


def test_statuses_select_classes() -> None:
    assert type(Response(403, {}, b"").error()) is Forbidden
    assert type(Response(500, {}, b"<html>").error()) is ServerError
    assert type(Response(502, {}, b"[]").error()) is ServerError
    assert type(Response(405, {}, b"{}").error()) is threadkeep.APIError


@pytest.mark.parametrize(
    "url",
    ["ftp://a", "http://", "http://user@host", "http://host?x=1", "http://a..b", f"http://{'a' * 64}.example"],
)
def test_an_invalid_base_url_is_rejected(url: str) -> None:
    with pytest.raises(ValueError):
        Threadkeep(url)


def test_a_base_url_may_have_a_path_and_an_ipv6_host() -> None:
    assert repr(Threadkeep("http://[::1]:99/api/")) == "Threadkeep('http://[::1]:99/api')"


def test_a_host_may_have_non_ascii_letters() -> None:
    assert repr(Threadkeep("http://bücher.example")) == "Threadkeep('http://xn--bcher-kva.example')"
    assert repr(Threadkeep(f"http://{'a' * 63}.example.")) == f"Threadkeep('http://{'a' * 63}.example.')"


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "ü", "a\x00"])
def test_headers_cannot_be_injected(tk: Threadkeep, value: str) -> None:
    with pytest.raises(ValueError):
        tk.thread("thrd_" + "5" * 32).set("a", 1, idempotency_key=value)
    with pytest.raises(ValueError):
        tk.thread("thrd_" + "5" * 32).set("a", 1, if_match=value)
    with pytest.raises(ValueError):
        tk.kv("n").put("k", b"", content_type=value)
    with pytest.raises(ValueError):
        tk.current(value)
    with pytest.raises(ValueError):
        Threadkeep(api_key=value)


def test_the_callers_httpx_client_sends_the_requests(server: Server) -> None:
    seen: list[str] = []
    hooks = {"request": [lambda request: seen.append(request.url.path)]}
    with httpx.Client(event_hooks=hooks) as http:
        with Threadkeep(server.url, api_key=API_KEY, http_client=http) as client:
            thread = client.threads.create()
            thread.push("a/b", "ü")
            assert thread.get("a/b") == ["ü"]
            thread.assign("of httpx")
            assert list(client.threads.export_all("of httpx")) == [thread.export()]
            client.owners.erase("of httpx")
        assert not http.is_closed
    assert len(seen) == 7


async def test_the_callers_async_httpx_client_sends_the_requests(server: Server) -> None:
    async with httpx.AsyncClient() as http:
        async with AsyncThreadkeep(server.url, api_key=API_KEY, http_client=http) as client:
            thread = await client.threads.create(owner="httpx")
            await thread.push("l", 1)
            assert await thread.get("l") == [1]
            assert [document async for document in client.threads.export_all("httpx")]
            await client.owners.erase("httpx")
        assert not http.is_closed
    client = AsyncThreadkeep("http://127.0.0.1:1", http_client=httpx.AsyncClient(), max_retries=0)
    with pytest.raises(TransportError) as raised:
        await client.thread("thrd_" + "1" * 32).read()
    assert raised.value.sent is False


def test_a_proxy_from_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "example.org")
    with Threadkeep("http://example.com", max_retries=0) as client, pytest.raises(TransportError):
        client.threads.create()
    assert "Httpx" in type(client._runner.transport._sender).__name__
    assert "Socket" in type(Threadkeep("http://example.org")._runner.transport._sender).__name__


def test_importing_the_package_imports_no_framework_and_no_httpx() -> None:
    code = "import sys, threadkeep; assert 'httpx' not in sys.modules; print(threadkeep.__version__)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == threadkeep.__version__
