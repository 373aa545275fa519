from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.server import HOST, Server

from threadkeep import Threadkeep, TransportError


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key)]
    subprocess.run([*command, "-out", str(certificate)], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return certificate, key


@pytest.fixture
def url(server: Server, certificate: tuple[Path, Path]) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    listener = socket.create_server(("127.0.0.1", 0))

    def pipe(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def accept() -> None:
        while True:
            try:
                raw, _ = listener.accept()
            except OSError:
                return
            try:
                client = context.wrap_socket(raw, server_side=True)
            except OSError:
                continue
            upstream = socket.create_connection((HOST, int(server.url.rpartition(":")[2])))
            for pair in ((client, upstream), (upstream, client)):
                threading.Thread(target=pipe, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()


def test_a_trusted_server_is_used(
    connect: Any, url: str, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    client: Threadkeep = connect(url)
    thread = client.threads.create()
    for n in range(5):
        assert thread.push("l", "x" * 100_000).length == n + 1
    assert len("".join(thread.get("l"))) == 500_000


def test_an_untrusted_server_receives_no_request(connect: Any, url: str) -> None:
    client: Threadkeep = connect(url, max_retries=0)
    with pytest.raises(TransportError) as raised:
        client.threads.create()
    assert raised.value.sent is False
