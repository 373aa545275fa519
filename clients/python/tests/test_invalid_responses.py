"""Tests that clients reject a successful response without the documented members, such as one from a faulty proxy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from api_calls import CLIENT_CALLS, THREAD_CALLS
from support.proxy import Proxy

from threadkeep import InvalidResponse, Threadkeep, UnreadableThreads

WITHOUT_BODY = {"destroy()", "checkpoints.delete(number)", "webhooks.delete(id)"}
"""Calls whose successful response is empty."""
ANY_VALUE = {"get(key)", "kv(namespace).get(key)"}
"""Calls whose response may be any value."""
ANY_OBJECT = {"read(*keys)", "stats()", "export()", "scope(name).call(tool)"}
"""Calls whose response may be any object."""

Call = Callable[[Threadkeep], object]


def on_thread(call: Callable[[Any], object]) -> Call:
    return lambda tk: call(tk.thread("thrd_" + "6" * 32))


def take_turn(tk: Threadkeep) -> None:
    with tk.thread("thrd_" + "6" * 32).turn():
        raise AssertionError("There is no turn.")


CALLS: dict[str, Call] = {
    **{name: on_thread(call) for name, call in THREAD_CALLS.items()},
    **CLIENT_CALLS,
    "turn()": take_turn,
}
REQUIRED = sorted(CALLS.keys() - WITHOUT_BODY)


def respond_with(body: bytes, head: str = "200 OK\r\ncontent-type: text/html") -> Callable[[bytes], bytes]:
    return lambda request: f"HTTP/1.1 {head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


@pytest.fixture
def proxied(connect: Any, proxy: Proxy) -> Threadkeep:
    return connect(proxy.url)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", REQUIRED)
def test_a_success_without_a_body_is_an_error(proxied: Threadkeep, proxy: Proxy, name: str) -> None:
    for fault in (respond_with(b"", "204 No Content"), respond_with(b"", "200 OK")):
        proxy.fault = fault
        with pytest.raises(InvalidResponse):
            CALLS[name](proxied)
    assert len(proxy.requests) == 2


@pytest.mark.parametrize("name", sorted(set(REQUIRED) - ANY_VALUE))
def test_a_success_with_an_unexpected_body_is_an_error(proxied: Threadkeep, proxy: Proxy, name: str) -> None:
    bodies = [b"<html>Please log in</html>", b"null", b"1"]
    for body in bodies if name in ANY_OBJECT else [*bodies, b"{}"]:
        proxy.fault = respond_with(body)
        with pytest.raises(InvalidResponse):
            CALLS[name](proxied)


def test_an_export_with_unreadable_threads_has_all_others(proxied: Threadkeep, proxy: Proxy) -> None:
    lines = (
        '{"format":1,"thread":{"id":"thrd_a"}}',
        '{"error":"unreadable","thread_id":"thrd_b","place":"thrd_b"}',
        '{"format":1,"thread":{"id":"thrd_c"}}',
        '{"complete":true,"failed":1}\n',
    )
    proxy.fault = respond_with("\n".join(lines).encode())
    export = proxied.threads.export_all()
    assert [next(export), next(export)] == [lines[0], lines[2]]
    with pytest.raises(UnreadableThreads) as raised:
        next(export)
    assert raised.value.thread_ids == ["thrd_b"]


@pytest.mark.parametrize("name", sorted(WITHOUT_BODY))
def test_some_calls_need_no_body(proxied: Threadkeep, proxy: Proxy, name: str) -> None:
    proxy.fault = respond_with(b"", "204 No Content")
    CALLS[name](proxied)


def test_a_document_in_another_encoding_is_rejected(tk: Threadkeep) -> None:
    document = tk.threads.create(state={"a": "é"}).export()
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        with pytest.raises(ValueError, match="UTF-16 or UTF-32"):
            tk.threads.import_document(document.encode(encoding))
    for marked in (document.encode("utf-8-sig"), f"\ufeff{document}"):
        with pytest.raises(ValueError, match="byte order mark"):
            tk.threads.import_document(marked)
    assert tk.threads.import_document(document.encode(), if_exists="replace").keys == 1


def test_a_secret_with_a_byte_order_mark_is_rejected() -> None:
    for key in ("\ufeffkey", "key\n"):
        with pytest.raises(ValueError, match="line end or a byte order mark"):
            Threadkeep(api_key=key)
