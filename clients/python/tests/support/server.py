from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

API_KEY = "an-api-secret-of-the-tests-that-is-long-enough"
PATIENCE_SECONDS = 300
"""Time limit in seconds for steps that take a second on an idle machine. Long, because other tests may run as well."""

HOST = f"127.{128 + (os.getpid() >> 16)}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
"""Loopback address of this process only, so that no other process takes a server's port while the server restarts."""

PROGRAM = os.environ.get("THREADKEEP_BIN", "target/debug/threadkeep")


class Redis:
    def __init__(self, directory: Path) -> None:
        self.socket = directory / "redis.sock"
        command = [
            "redis-server",
            "--port",
            "0",
            "--unixsocket",
            str(self.socket),
            "--save",
            "",
            "--dir",
            str(directory),
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        wait_until(self.socket.exists)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


class Server:
    def __init__(self, directory: Path, redis: Redis | None, **settings: str) -> None:
        self._log = directory / "server.log"
        self._redis = redis
        self._settings = {f"THREADKEEP_{name.upper()}": value for name, value in settings.items()}
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}"

    def start(self) -> None:
        environment = {
            "THREADKEEP_LISTEN": f"{HOST}:{self._port}",
            "THREADKEEP_STORE_TIMEOUT_MS": "30000",
            "THREADKEEP_WORKERS": "2",
            "THREADKEEP_SIGNING_KEYS": "main:an-hmac-secret-of-the-tests-that-is-long-enough",
            "THREADKEEP_API_KEYS": f"ops:{API_KEY}",
            **self._settings,
        }
        if self._redis:
            environment["THREADKEEP_REDIS_URL"] = f"unix://{self._redis.socket}"
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [PROGRAM], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        wait_until(self._listens)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self._process.send_signal(how)
        self._process.wait()

    def _listens(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(self._log.read_text())
        for line in self._log.read_text().splitlines():
            if '"listening"' in line:
                self._port = int(_address_in(json.loads(line)).rpartition(":")[2])
                return True
        return False


def _address_in(entry: object) -> str:
    if isinstance(entry, dict):
        if isinstance(entry.get("address"), str):
            return entry["address"]
        return next(filter(None, map(_address_in, entry.values())), "")
    return ""


def wait_until(condition: object, seconds: float = PATIENCE_SECONDS) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{condition} does not hold.")
        time.sleep(0.02)
