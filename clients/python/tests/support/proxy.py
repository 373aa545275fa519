from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

HEAD_END = b"\r\n\r\n"


class Proxy:
    """Forwards requests to a server, one per connection. Calls `fault` with the bytes of each request.

    `fault` returns None to forward the request, "cut" to close the connection after the server has performed the
    request, "hang" to never answer, or the bytes of a response.
    """

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition("/")[2].rpartition(":")
        self._server = (host, int(port))
        self.fault: Callable[[bytes], bytes | str | None] = lambda request: None
        self.alter: Callable[[bytes], bytes] = lambda response: response
        self.requests: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def connections(self) -> int:
        return len(self._open)

    @property
    def open_connections(self) -> int:
        return sum(connection.fileno() >= 0 for connection in self._open)

    def fail_once(self, how: bytes | str, method: str = "") -> None:
        faults = iter([how])
        self.fault = lambda request: next(faults, None) if request.startswith(method.encode()) else None

    def cut_every(self, n: int) -> None:
        """Cuts every nth request, but not the retries of that request."""
        seen: set[bytes] = set()

        def fault(request: bytes) -> str | None:
            is_new = request not in seen
            seen.add(request)
            return "cut" if is_new and len(seen) % n == 0 else None

        self.fault = fault

    def close(self) -> None:
        self._listener.close()
        for connection in self._open:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._open.append(client)
        with client, suppress(OSError):  # the client may have closed the connection
            while request := read_message(client):
                self.requests.append(request)
                fault = self.fault(request)
                if isinstance(fault, bytes):
                    client.sendall(fault)
                    continue
                with socket.create_connection(self._server) as server:
                    server.sendall(request)
                    response = read_message(server)
                if fault == "hang":
                    client.recv(1)
                if fault is not None:
                    return
                client.sendall(self.alter(response))


def read_message(connection: socket.socket) -> bytes:
    data = b""
    while HEAD_END not in data:
        try:
            part = connection.recv(65_536)
        except OSError:
            return b""
        if not part:
            return b""
        data += part
    head, _, body = data.partition(HEAD_END)
    lines = head.decode().lower().split("\r\n")
    length = next((int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65_536)
    return head + HEAD_END + body


def header_of(request: bytes, name: str) -> str | None:
    for line in request.partition(HEAD_END)[0].decode().split("\r\n"):
        key, _, value = line.partition(": ")
        if key.lower() == name:
            return value
    return None
