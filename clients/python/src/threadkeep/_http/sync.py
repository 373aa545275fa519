"""Sends requests over blocking sockets. Thread-safe."""

from __future__ import annotations

import os
import select
import socket
import ssl
import time
from collections import deque
from contextlib import suppress

from ..errors import Timeout, TransportError
from .limits import CONNECT_SECONDS, MAX_IDLE_CONNECTIONS, MAX_IDLE_SECONDS, RECEIVE_BYTES
from .message import Origin, Request, Response, serialize
from .parser import ResponseParser


class SocketSender:
    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._tls = ssl.create_default_context() if origin.scheme == "https" else None
        self._idle: deque[_Connection] = deque(maxlen=MAX_IDLE_CONNECTIONS)
        self._pid = os.getpid()
        self._is_closed = False

    def send(self, request: Request, seconds: float) -> Response:
        deadline = time.monotonic() + seconds
        connection = self._take() or _Connection(self._origin, self._tls, deadline)
        try:
            parser = connection.exchange(serialize(self._origin, request), request.method, deadline)
        except BaseException:
            connection.close()
            raise
        if parser.can_reuse:
            self._give_back(connection)
        else:
            connection.close()
        return Response(parser.status, parser.headers, parser.take())

    def open(self, request: Request, seconds: float) -> SocketStream:
        deadline = time.monotonic() + seconds
        connection = _Connection(self._origin, self._tls, deadline)
        try:
            connection.begin(serialize(self._origin, request), request.method, deadline)
        except BaseException:
            connection.close()
            raise
        return SocketStream(connection)

    def close(self) -> None:
        self._is_closed = True
        with suppress(IndexError):  # another thread may take the last connection
            while True:
                self._idle.pop().close()

    def _take(self) -> _Connection | None:
        if self._pid != os.getpid():  # the connections belong to the parent process
            self._idle.clear()
            self._pid = os.getpid()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.is_usable():
                return connection
            connection.close()

    def _give_back(self, connection: _Connection) -> None:
        connection.idle_since = time.monotonic()
        self._idle.append(connection)
        if self._is_closed:  # checked after the append, because another thread may call `close` in between
            self.close()


class SocketStream:
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self.status = connection.parser.status
        self.headers = connection.parser.headers

    def read(self, seconds: float) -> bytes:
        return self._connection.read(time.monotonic() + seconds)

    def close(self) -> None:
        self._connection.close()


class _Connection:
    idle_since = 0.0
    parser: ResponseParser

    def __init__(self, origin: Origin, tls: ssl.SSLContext | None, deadline: float) -> None:
        seconds = max(0.001, min(CONNECT_SECONDS, deadline - time.monotonic()))
        try:
            self._socket = socket.create_connection((origin.host, origin.port), seconds)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls:  # closes the socket if it fails
                self._socket = tls.wrap_socket(self._socket, server_hostname=origin.host)
        except TimeoutError:
            raise Timeout(f"Cannot connect to {origin} in time.", sent=False) from None
        except OSError as error:
            raise TransportError(f"Cannot connect to {origin}: {error.strerror or error}.", sent=False) from None

    def exchange(self, data: bytes, method: str, deadline: float) -> ResponseParser:
        self.begin(data, method, deadline)
        while not self.parser.is_complete:
            self._receive(deadline)
        return self.parser

    def begin(self, data: bytes, method: str, deadline: float) -> None:
        self.parser = ResponseParser(method)
        try:
            self._set_timeout(deadline)
            self._socket.sendall(data)
        except TimeoutError:
            raise Timeout("The request could not be sent in time.", sent=True) from None
        except OSError:
            pass  # reads the response anyway, because the server may have answered before it closed the connection
        while not self.parser.has_head:
            self._receive(deadline)

    def read(self, deadline: float) -> bytes:
        while not self.parser.body_bytes and not self.parser.is_complete:
            self._receive(deadline)
        return self.parser.take()

    def is_usable(self) -> bool:
        """Returns whether the connection is usable: recently used, still open, and without unsolicited data."""
        return time.monotonic() - self.idle_since < MAX_IDLE_SECONDS and not _is_readable(self._socket)

    def close(self) -> None:
        self._socket.close()

    def _receive(self, deadline: float) -> None:
        try:
            self._set_timeout(deadline)
            data = self._socket.recv(RECEIVE_BYTES)
        except TimeoutError:
            raise Timeout("No response arrived in time.", sent=True) from None
        except OSError:
            raise TransportError("The connection was cut.", sent=True) from None
        if data:
            self.parser.feed(data)
        else:
            self.parser.end()

    def _set_timeout(self, deadline: float) -> None:
        self._socket.settimeout(max(0.001, deadline - time.monotonic()))


def _is_readable(connection: socket.socket) -> bool:
    if hasattr(select, "poll"):  # `select` rejects descriptors over 1023
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([connection], [], [], 0)[0])
