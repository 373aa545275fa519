from __future__ import annotations

import pytest

from threadkeep import TransportError
from threadkeep._http.parser import MAX_HEAD_BYTES, ResponseParser
from threadkeep._sse import Message, SseParser

CHUNKED = (
    b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A:  b \r\n\r\n"
    b"4;ext=1\r\nWiki\r\n0A\r\npedia in\r\n\r\n0\r\ntrailer: 1\r\n\r\n"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_a_response_may_arrive_in_any_parts(size: int) -> None:
    parser = ResponseParser("GET")
    for start in range(0, len(CHUNKED), size):
        assert not parser.is_complete
        parser.feed(CHUNKED[start : start + size])
    assert parser.is_complete and parser.can_reuse
    assert (parser.status, parser.headers["x-a"], parser.take()) == (200, "b", b"Wikipedia in\r\n")


def test_the_length_or_the_end_of_the_connection_ends_a_body() -> None:
    parser = ResponseParser("GET")
    parser.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na")
    assert not parser.is_complete
    parser.feed(b"b")
    assert parser.is_complete and parser.take() == b"ab"

    parser = ResponseParser("GET")
    parser.feed(b"HTTP/1.0 200 OK\r\n\r\nabc")
    assert not parser.is_complete
    parser.end()
    assert parser.is_complete and not parser.can_reuse and parser.take() == b"abc"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_some_responses_have_no_body(method: str, status: int) -> None:
    parser = ResponseParser(method)
    parser.feed(b"HTTP/1.1 %d X\r\ncontent-length: 5\r\n\r\n" % status)
    assert parser.is_complete and parser.can_reuse


def test_a_connection_with_surplus_data_is_not_reused() -> None:
    parser = ResponseParser("GET")
    parser.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP")
    assert parser.is_complete and not parser.can_reuse


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: " + b"9" * 5_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"x" * (MAX_HEAD_BYTES + 1),
    ],
)
def test_a_response_that_is_not_http_is_rejected(data: bytes) -> None:
    with pytest.raises(TransportError):
        ResponseParser("GET").feed(data)


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na"])
def test_a_truncated_response_is_an_error(data: bytes) -> None:
    parser = ResponseParser("GET")
    parser.feed(data)
    with pytest.raises(TransportError):
        parser.end()


STREAM = ": hi\nretry: 5\r\nid: 1\n\nevent: a\r\ndata: x\r\ndata:\u00fc\r\rid: 2\ndata: y\n\nnoise\n\n".encode()


@pytest.mark.parametrize("size", [1, 2, 3, 1_000])
def test_events_may_arrive_in_any_parts(size: int) -> None:
    parser = SseParser()
    parts = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]
    assert [message for part in parts for message in parser.feed(part)] == [
        Message(id="1", retry_ms=5),
        Message("a", "x\nü"),
        Message(id="2", data="y"),
    ]


def test_a_retry_time_with_too_many_digits_is_ignored() -> None:
    assert list(SseParser().feed(b"retry: " + b"9" * 5_000 + b"\ndata: x\n\n")) == [Message(data="x")]
