from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext

from ..errors import Timeout, TransportError
from .limits import CONNECT_SECONDS, MAX_CONNECTIONS, MAX_IDLE_CONNECTIONS, MAX_IDLE_SECONDS, MAX_UNREAD_BYTES
from .message import Origin, Request, Response, serialize
from .parser import ResponseParser


class LoopSender:
    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._tls = ssl.create_default_context() if origin.scheme == "https" else None
        self._loop = asyncio.get_running_loop()
        self._idle: deque[_Connection] = deque()
        self._in_use = asyncio.Semaphore(MAX_CONNECTIONS)
        self._is_closed = False

    async def send(self, request: Request, seconds: float) -> Response:
        """Returns the response, regardless of its status. Cancelling the call closes its connection."""
        # calls that wait for a turn do not count toward the limit, so they cannot block the call that ends the turn
        async with nullcontext() if request.extra_seconds else self._in_use:
            deadline = self._loop.time() + seconds
            connection = self._take() or await self._connect(deadline)
            try:
                connection.begin(serialize(self._origin, request), request.method)
                await connection.until(_is_complete, deadline)
            except BaseException:
                connection.abort()
                raise
            parser = connection.parser
            self._give_back(connection, parser)
            return Response(parser.status, parser.headers, parser.take())

    async def open(self, request: Request, seconds: float) -> LoopStream:
        deadline = self._loop.time() + seconds
        connection = await self._connect(deadline)
        try:
            connection.begin(serialize(self._origin, request), request.method)
            await connection.until(_has_head, deadline)
        except BaseException:
            connection.abort()
            raise
        return LoopStream(connection)

    async def close(self) -> None:
        """Closes idle connections now. Closes each busy connection after its response is complete."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().abort()

    def _take(self) -> _Connection | None:
        oldest = self._loop.time() - MAX_IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.idle_since > oldest:
                return connection
            connection.abort()
        return None

    async def _connect(self, deadline: float) -> _Connection:
        origin = self._origin
        seconds = max(0.001, min(CONNECT_SECONDS, deadline - self._loop.time()))
        connecting = self._loop.create_connection(_Connection, origin.host, origin.port, ssl=self._tls)
        try:
            _, connection = await asyncio.wait_for(connecting, seconds)
        except (TimeoutError, asyncio.TimeoutError):
            raise Timeout(f"Cannot connect to {origin} in time.", sent=False) from None
        except OSError as error:
            raise TransportError(f"Cannot connect to {origin}: {error.strerror or error}.", sent=False) from None
        return connection

    def _give_back(self, connection: _Connection, parser: ResponseParser) -> None:
        can_keep = len(self._idle) < MAX_IDLE_CONNECTIONS and not self._is_closed
        if can_keep and parser.can_reuse and connection.is_open:
            connection.idle_since = self._loop.time()
            self._idle.append(connection)
        else:
            connection.abort()


class LoopStream:
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self.status = connection.parser.status
        self.headers = connection.parser.headers

    async def read(self, seconds: float) -> bytes:
        connection = self._connection
        await connection.until(_has_part, asyncio.get_running_loop().time() + seconds)
        part = connection.parser.take()
        connection.resume()
        return part

    async def close(self) -> None:
        self._connection.abort()


Condition = Callable[[ResponseParser], bool]


def _is_complete(parser: ResponseParser) -> bool:
    return parser.is_complete


def _has_head(parser: ResponseParser) -> bool:
    return parser.has_head


def _has_part(parser: ResponseParser) -> bool:
    return parser.body_bytes > 0 or parser.is_complete


class _Connection(asyncio.Protocol):
    """A connection. Wakes the waiting call only when the call's condition is true, not for each received part."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._condition: Condition = _is_complete
        self._failure: TransportError | None = None
        self._is_paused = False
        self._is_serving = False
        self.is_open = True
        self.idle_since = 0.0
        self.parser = ResponseParser("GET")

    def begin(self, data: bytes, method: str) -> None:
        self.parser = ResponseParser(method)
        self._is_serving = True
        self._transport.write(data)

    async def until(self, condition: Condition, deadline: float) -> None:
        """Waits until `condition` is true. Raises `TransportError` at `deadline`, or if the connection ends."""
        if condition(self.parser):
            return
        if self._failure:
            raise self._failure
        self._condition = condition
        self._waiter = self._loop.create_future()
        timer = self._loop.call_at(deadline, self._fail, Timeout("No response arrived in time.", sent=True))
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    def abort(self) -> None:
        self.is_open = False
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        parser = self.parser
        if not self._is_serving or parser.is_complete:
            self.abort()  # unsolicited data
            return
        try:
            parser.feed(data)
        except TransportError as error:
            self._fail(error)
            return
        if self._waiter and self._condition(parser) and not self._waiter.done():
            self._waiter.set_result(None)
        if parser.body_bytes > MAX_UNREAD_BYTES and self._condition is not _is_complete and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        try:
            self.parser.end()
        except TransportError as error:
            self._fail(error)
        else:
            if self._waiter and not self._waiter.done():
                self._waiter.set_result(None)

    def _fail(self, error: TransportError) -> None:
        self._failure = error
        self.is_open = False
        if self._waiter and not self._waiter.done():
            self._waiter.set_exception(error)
