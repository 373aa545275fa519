#!/usr/bin/env python3
"""Measures threadkeep on Redis Clusters of several sizes on this machine, next to the figures of model.py.

Usage: load/cluster/check.py [--masters 3,6,9] [--replicas 2] [--seconds 20]

Prints CPU and calls per master while the service is idle, while each replica reads all events, and during pushes and
reads of 1,000 threads. Needs redis-server, redis-cli and target/release/threadkeep (or THREADKEEP_BIN).
"""

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import model

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("THREADKEEP_BIN", str(ROOT / "target/release/threadkeep"))
SECRET = "s" * 40
THREADS = 1_000
CONNECTIONS = 16
START_LIMIT = 60
"""Seconds for a process to become ready."""


@dataclass
class Sample:
    at: float
    cpu: list[float]
    """Seconds of CPU per master."""
    calls: list[int]
    """Commands per master, including those that scripts call."""
    connections: list[int]
    server_cpu: float
    """Seconds of CPU of all replicas."""


@dataclass
class Service:
    ports: list[int]
    processes: list[int]
    """Process ids."""


def free_port() -> int:
    # cluster nodes also use the port that is higher by 10,000
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port < 55_000:
            return port


def redis(port: int, *command: str) -> str:
    return subprocess.run(["redis-cli", "-p", str(port), *command], check=True, capture_output=True, text=True).stdout


def info(port: int, section: str) -> dict[str, str]:
    lines = redis(port, "INFO", section).splitlines()
    return dict(line.strip().split(":", 1) for line in lines if ":" in line)


def wait_until(condition, what: str) -> None:
    end = time.monotonic() + START_LIMIT
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what} did not become ready")
        time.sleep(0.1)


@contextlib.contextmanager
def cluster(masters: int) -> Iterator[list[int]]:
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        ports = [free_port() for _ in range(masters)]
        for port in ports:
            folder = pathlib.Path(directory, str(port))
            folder.mkdir()
            options = ["--cluster-enabled", "yes", "--save", "", "--dir", str(folder), "--logfile", str(folder / "log")]
            process = subprocess.Popen(["redis-server", "--port", str(port), *options])
            stack.callback(process.wait)
            stack.callback(process.kill)
        for port in ports:
            wait_until(lambda port=port: is_answering(port), "a master")
        nodes = [f"127.0.0.1:{port}" for port in ports]
        create = ["redis-cli", "--cluster", "create", *nodes, "--cluster-yes"]
        subprocess.run(create, check=True, stdout=subprocess.DEVNULL)
        for port in ports:
            wait_until(lambda port=port: "cluster_state:ok" in redis(port, "CLUSTER", "INFO"), "the cluster")
        yield ports


def is_answering(port: int) -> bool:
    with contextlib.suppress(subprocess.CalledProcessError):
        return redis(port, "PING").strip() == "PONG"
    return False


@contextlib.contextmanager
def replicas(masters: list[int], count: int) -> Iterator[Service]:
    with contextlib.ExitStack() as stack:
        service = Service([free_port() for _ in range(count)], [])
        for port in service.ports:
            settings = {
                "THREADKEEP_REDIS_URL": f"redis+cluster://127.0.0.1:{masters[0]}",
                "THREADKEEP_LISTEN": f"127.0.0.1:{port}",
                "THREADKEEP_SIGNING_KEYS": "k1:" + "a" * 64,
                "THREADKEEP_API_KEYS": f"check:{SECRET}",
                "THREADKEEP_WORKERS": "1",
                "THREADKEEP_LOG": "error",
            }
            process = subprocess.Popen([PROGRAM, "serve"], env=os.environ | settings, stdout=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            service.processes.append(process.pid)
        for port in service.ports:
            wait_until(lambda port=port: is_ready(port), "a replica")
        yield service


def is_ready(port: int) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as response:
        return response.status == 200
    return False


def process_cpu(process: int) -> float:
    stat = pathlib.Path(f"/proc/{process}/stat").read_text()
    user, system = stat.rpartition(") ")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def sample(masters: list[int], service: Service) -> Sample:
    cpu, calls, connections = [], [], []
    for port in masters:
        used = info(port, "cpu")
        cpu.append(float(used["used_cpu_sys"]) + float(used["used_cpu_user"]))
        calls.append(int(info(port, "stats")["total_commands_processed"]))
        connections.append(int(info(port, "clients")["connected_clients"]) - 1)
    return Sample(time.monotonic(), cpu, calls, connections, sum(map(process_cpu, service.processes)))


def request(method: str, path: str, body: str = "", accept: str = "*/*") -> bytes:
    head = [f"{method} {path} HTTP/1.1", "host: localhost", f"authorization: Bearer {SECRET}", f"accept: {accept}"]
    if body:
        head += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*head, "", body]).encode()


async def answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
    status = int(head.split(b" ", 2)[1])
    if status >= 300:
        raise SystemExit(f"a request failed: {head.decode()}{body.decode()}")
    return body


async def send_all(ports: list[int], requests: list[bytes], seconds: float | None) -> tuple[int, list[bytes]]:
    """Sends `requests` over `CONNECTIONS` connections, once or repeatedly for `seconds`."""
    end = None if seconds is None else time.monotonic() + seconds

    async def send_some(number: int) -> list[bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", ports[number % len(ports)])
        own, bodies = requests[number::CONNECTIONS], []
        while True:
            for item in own:
                writer.write(item)
                bodies.append(await answer(reader))
                if end and time.monotonic() > end:
                    break
            if end is None or time.monotonic() > end:
                writer.close()
                return bodies

    parts = await asyncio.gather(*(send_some(number) for number in range(CONNECTIONS)))
    return sum(map(len, parts)), [body for part in parts for body in part]


def report(name: str, before: Sample, after: Sample, requests: int, predicted: float) -> None:
    seconds = after.at - before.at
    cpu = [(end - start) / seconds for start, end in zip(before.cpu, after.cpu, strict=True)]
    calls = [(end - start) / seconds for start, end in zip(before.calls, after.calls, strict=True)]
    mean, largest = sum(cpu) / len(cpu), max(cpu)
    server = f"{(after.server_cpu - before.server_cpu) / requests * 1e6:.1f}" if requests else ""
    print(
        f"| {len(cpu)} | {name} | {requests / seconds:,.0f} | {mean * 100:.2f} % | {largest * 100:.2f} % "
        f"| {predicted * 100:.2f} % | {sum(calls) / len(calls):,.0f} | {max(after.connections)} | {server} |",
        flush=True,
    )


def measure(masters: list[int], service: Service, seconds: float) -> None:
    ports = service.ports
    shape = model.Deployment(masters=len(masters), replicas=len(ports), workers=1)

    def phase(name: str, action, load: model.Load) -> None:
        before = sample(masters, service)
        requests = action()
        after = sample(masters, service)
        rate = requests / (after.at - before.at)
        predicted = model.redis_cpu(shape, load.at_rate(rate))
        report(name, before, after, requests, predicted)

    def idle() -> int:
        time.sleep(seconds)
        return 0

    time.sleep(5)
    phase("idle", idle, model.Load())
    messages = [{"role": "user", "content": "x" * 180} for _ in range(10)]
    state = json.dumps({"state": {"messages": messages}})
    create = [request("POST", "/v1/threads", body=state)] * THREADS
    before = sample(masters, service)
    created, bodies = asyncio.run(send_all(ports, create, None))
    after = sample(masters, service)
    rate = created / (after.at - before.at)
    report("create", before, after, created, model.redis_cpu(shape, model.Load(creates=rate)))
    threads = [json.loads(body)["id"] for body in bodies]

    push_body = json.dumps({"value": messages[0]})
    push = [request("POST", f"/v1/threads/{thread}/state/messages/push?max_records=20", push_body) for thread in threads]
    read = [request("GET", f"/v1/threads/{thread}/state") for thread in threads]
    phase("push", lambda: asyncio.run(send_all(ports, push, seconds))[0], model.Load(pushes=1))
    phase("read", lambda: asyncio.run(send_all(ports, read, seconds))[0], model.Load(reads=1))
    # last, because writes cost more for a minute after somebody has read all events
    with contextlib.ExitStack() as stack:
        for port in ports:
            stream = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            stream.sendall(request("GET", "/v1/events", accept="text/event-stream"))
            stream.recv(1)
        time.sleep(2)
        phase("each replica reads all events", idle, model.Load(event_readers=len(ports)))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--masters", default="3,6,9", help="sizes of clusters, separated by commas")
    arguments.add_argument("--replicas", type=int, default=2, help="replicas of threadkeep")
    arguments.add_argument("--seconds", type=float, default=20, help="seconds per measurement")
    given = arguments.parse_args()
    print("| masters | load | requests/s | CPU per master | largest | model | commands/s per master | connections per master | server, µs per request |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for masters in map(int, given.masters.split(",")):
        with cluster(masters) as nodes, replicas(nodes, given.replicas) as service:
            measure(nodes, service, given.seconds)


if __name__ == "__main__":
    main()
