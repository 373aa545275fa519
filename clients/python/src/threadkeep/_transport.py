"""Sends requests, and retries them if a retry is safe. The only module that imports httpx.

Requests use this package's connections (`_http`), unless the caller passes an httpx client, or the environment
configures a proxy for the server.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import threading
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeAlias
from urllib.request import getproxies, proxy_bypass

from ._http.limits import MAX_CONNECTIONS
from ._http.loop import LoopSender
from ._http.message import Origin, Request, Response, is_success
from ._http.sync import SocketSender
from .errors import ThreadkeepError, Timeout, TransportError

if TYPE_CHECKING:
    import httpx

SyncClient: TypeAlias = "httpx.Client"
AsyncClient: TypeAlias = "httpx.AsyncClient"

RETRY_SECONDS = 10.0
"""How long to retry if `max_retries` is not set. Longer than a server restart takes."""
FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 5.0
MAX_RETRY_AFTER_SECONDS = 30.0
STREAM_SECONDS = 60.0
"""Maximum time without data in an httpx stream. Reads of the stream have no other timeout."""


class Stream(Protocol):
    status: int
    headers: dict[str, str]

    def read(self, seconds: float) -> bytes: ...
    def close(self) -> None: ...


class AsyncStream(Protocol):
    status: int
    headers: dict[str, str]

    async def read(self, seconds: float) -> bytes: ...
    async def close(self) -> None: ...


class Attempts:
    """Decides whether and when to retry a request: up to `max_retries` times, or for `RETRY_SECONDS`."""

    def __init__(self, request: Request, max_retries: int | None) -> None:
        self._request = request
        self._retries_left: float = math.inf if max_retries is None else max_retries
        self._end = time.monotonic() + RETRY_SECONDS if max_retries is None else math.inf
        self._ceiling = FIRST_PAUSE_SECONDS

    def pause_after_failure(self, error: TransportError) -> float:
        """Returns the pause before the next attempt. Raises `error` after the last attempt."""
        if error.sent and not self._request.is_repeatable:
            raise error
        return self._next(error)

    def pause_after(self, response: Response) -> float:
        error = response.error()
        if error.status == 429:
            min_pause = error.retry_after or 0.0
            if min_pause > MAX_RETRY_AFTER_SECONDS:
                raise error
            return max(min_pause, self._next(error))
        if error.status not in (502, 503, 504) or not self._request.is_repeatable:
            raise error
        return self._next(error)

    def _next(self, error: ThreadkeepError) -> float:
        if self._retries_left <= 0 or time.monotonic() >= self._end:
            raise error
        self._retries_left -= 1
        ceiling = min(self._ceiling, MAX_PAUSE_SECONDS)
        self._ceiling *= 2
        return random.uniform(ceiling / 2, ceiling)


class SyncTransport:
    """Sends blocking requests. Thread-safe."""

    def __init__(self, origin: Origin, timeout: float, max_retries: int | None, client: SyncClient | None) -> None:
        self.origin = origin
        self.limits = (timeout, max_retries)
        self._timeout = timeout
        self._max_retries = max_retries
        if client is None and not _has_proxy(origin):
            self._sender: SocketSender | _SyncHttpx = SocketSender(origin)
        else:
            self._sender = _SyncHttpx(origin, client)

    def send(self, request: Request) -> Response:
        attempts = None
        while True:
            try:
                response = self._sender.send(request, self._timeout + request.extra_seconds)
            except TransportError as error:
                attempts = attempts or Attempts(request, self._max_retries)
                pause = attempts.pause_after_failure(error)
            else:
                if is_success(response.status):
                    return response
                attempts = attempts or Attempts(request, self._max_retries)
                pause = attempts.pause_after(response)
            time.sleep(pause)

    def open(self, request: Request) -> Stream:
        """Sends a request without retries. Returns the response before the body arrives."""
        stream = self._sender.open(request, self._timeout)
        if is_success(stream.status):
            return stream
        try:
            body = b"".join(iter(lambda: stream.read(self._timeout), b""))
        finally:
            stream.close()
        raise Response(stream.status, stream.headers, body).error()

    def close(self) -> None:
        self._sender.close()


class AsyncTransport:
    """Sends requests from any event loop. Each loop has its own connections, because asyncio binds them to a loop."""

    def __init__(self, origin: Origin, timeout: float, max_retries: int | None, client: AsyncClient | None) -> None:
        self.origin = origin
        self.limits = (timeout, max_retries)
        self._timeout = timeout
        self._max_retries = max_retries
        self._client = client
        self._uses_httpx = client is not None or _has_proxy(origin)
        self._senders: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopSender | _AsyncHttpx]
        self._senders = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        """Guards `_senders`, because several threads may each run a loop."""

    async def send(self, request: Request) -> Response:
        attempts = None
        sender = self._sender()
        while True:
            try:
                response = await sender.send(request, self._timeout + request.extra_seconds)
            except TransportError as error:
                attempts = attempts or Attempts(request, self._max_retries)
                pause = attempts.pause_after_failure(error)
            else:
                if is_success(response.status):
                    return response
                attempts = attempts or Attempts(request, self._max_retries)
                pause = attempts.pause_after(response)
            await asyncio.sleep(pause)

    async def open(self, request: Request) -> AsyncStream:
        stream = await self._sender().open(request, self._timeout)
        if is_success(stream.status):
            return stream
        body = b""
        try:
            while part := await stream.read(self._timeout):
                body += part
        finally:
            await stream.close()
        raise Response(stream.status, stream.headers, body).error()

    async def close(self) -> None:
        """Closes the connections of the running loop, and asks the other loops to close theirs."""
        running = asyncio.get_running_loop()
        with self._lock:
            senders = list(self._senders.items())
        for loop, sender in senders:
            if loop is running:
                await sender.close()
            else:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(_begin_to_close, sender)

    def _sender(self) -> LoopSender | _AsyncHttpx:
        loop = asyncio.get_running_loop()
        with self._lock:
            sender = self._senders.get(loop)
            if sender is None:
                for other in [other for other in self._senders if other.is_closed()]:
                    del self._senders[other]  # connections refer to the closed loop, so neither would be freed
                sender = _AsyncHttpx(self.origin, self._client) if self._uses_httpx else LoopSender(self.origin)
                self._senders[loop] = sender
            return sender


def _begin_to_close(sender: LoopSender | _AsyncHttpx) -> asyncio.Future[None]:
    """Starts to close a sender. Runs in the sender's loop, so that a coroutine is created only if that loop runs."""
    return asyncio.ensure_future(sender.close())


def _has_proxy(origin: Origin) -> bool:
    proxies = getproxies()
    return bool(proxies.get(origin.scheme) or proxies.get("all")) and not proxy_bypass(origin.host)


class _SyncHttpx:
    def __init__(self, origin: Origin, client: SyncClient | None) -> None:

        self._origin = origin
        self._is_ours = client is None
        self._client = client or self._own_client()

    def send(self, request: Request, seconds: float) -> Response:
        stream = self.open(request, seconds, seconds)
        try:
            body = b"".join(iter(lambda: stream.read(seconds), b""))
        finally:
            stream.close()
        return Response(stream.status, stream.headers, body)

    def open(self, request: Request, seconds: float, read_seconds: float = STREAM_SECONDS) -> _SyncHttpxStream:
        import httpx

        if self._is_ours and self._pid != os.getpid():  # the connections belong to the parent process
            self._client = self._own_client()
        built = _built(self._client, self._origin, request, seconds, read_seconds)
        try:
            return _SyncHttpxStream(self._client.send(built, stream=True))
        except httpx.HTTPError as error:
            raise _failure(error) from None

    def close(self) -> None:
        if self._is_ours:
            self._client.close()

    def _own_client(self) -> httpx.Client:
        import httpx

        self._pid = os.getpid()
        return httpx.Client(limits=httpx.Limits(max_connections=None))


class _SyncHttpxStream:
    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._parts = response.iter_bytes()
        self.status = response.status_code
        self.headers = dict(response.headers)

    def read(self, seconds: float) -> bytes:
        import httpx

        try:
            return next(self._parts, b"")
        except httpx.HTTPError as error:
            raise _failure(error) from None

    def close(self) -> None:
        self._response.close()


class _AsyncHttpx:
    def __init__(self, origin: Origin, client: AsyncClient | None) -> None:
        import httpx

        self._origin = origin
        self._is_ours = client is None
        self._client = client or httpx.AsyncClient(limits=httpx.Limits(max_connections=MAX_CONNECTIONS))

    async def send(self, request: Request, seconds: float) -> Response:
        stream = await self.open(request, seconds, seconds)
        body = b""
        try:
            while part := await stream.read(seconds):
                body += part
        finally:
            await stream.close()
        return Response(stream.status, stream.headers, body)

    async def open(self, request: Request, seconds: float, read_seconds: float = STREAM_SECONDS) -> _AsyncHttpxStream:
        import httpx

        built = _built(self._client, self._origin, request, seconds, read_seconds)
        try:
            return _AsyncHttpxStream(await self._client.send(built, stream=True))
        except httpx.HTTPError as error:
            raise _failure(error) from None

    async def close(self) -> None:
        if self._is_ours:
            await self._client.aclose()


class _AsyncHttpxStream:
    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._parts = response.aiter_bytes()
        self.status = response.status_code
        self.headers = dict(response.headers)

    async def read(self, seconds: float) -> bytes:
        import httpx

        try:
            return await anext(self._parts, b"")
        except httpx.HTTPError as error:
            raise _failure(error) from None

    async def close(self) -> None:
        await self._response.aclose()


def _built(
    client: SyncClient | AsyncClient, origin: Origin, request: Request, seconds: float, read_seconds: float
) -> httpx.Request:
    import httpx

    return client.build_request(
        request.method,
        f"{origin}{request.target}",
        content=request.body,
        headers=dict(request.headers),
        timeout=httpx.Timeout(seconds, read=read_seconds),
    )


def _failure(error: httpx.HTTPError) -> TransportError:
    import httpx

    sent = not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
    if isinstance(error, httpx.TimeoutException):
        return Timeout("No response arrived in time.", sent=sent)
    return TransportError(f"The request failed: {type(error).__name__}.", sent=sent)
