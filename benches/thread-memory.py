"""Compares the memory that threads and plain keys use in Redis: python3 benches/thread-memory.py [PROGRAM]

PROGRAM is a threadkeep program; the default is target/release/threadkeep. Needs redis-server, and starts one for each row.
Prints the growth of used_memory per thread, and per key that `SET key state EX 3600` creates with a name of equal length.
"""

import concurrent.futures
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "target/release/threadkeep"
SECRET = "s" * 32
CONNECTIONS = 8
# number of messages, bytes per message, and number of threads
STATES = [(0, 0, 72_000), (2, 100, 72_000), (10, 415, 12_000), (60, 922, 2_000)]
SETTINGS = {
    "Redis defaults": [],
    "recommended": ["--hash-max-listpack-value", "2048", "--hash-max-listpack-entries", "24"],
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port):
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


class Redis:
    """A connection to the server under test."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.replies = self.socket.makefile("rb")

    def send(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self.socket.sendall(b"*%d\r\n" % len(parts) + b"".join(parts))

    def reply(self):
        line = self.replies.readline().rstrip()
        if line[:1] != b"$":
            return line[1:]
        return self.replies.read(int(line[1:]) + 2)[:-2]

    def used_memory(self):
        self.send("INFO", "memory")
        fields = dict(line.split(b":", 1) for line in self.reply().splitlines() if b":" in line)
        return int(fields[b"used_memory"])


def state(messages, text_bytes):
    if messages == 0:
        return '{"n":123456789}'
    roles = ["user", "assistant"]
    text = "x" * text_bytes
    records = [{"role": roles[number % 2], "content": text} for number in range(messages)]
    return json.dumps({"messages": records}, separators=(",", ":"))


def create(port, body, count):
    client = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"content-type": "application/json", "authorization": f"Bearer {SECRET}"}
    for _ in range(count):
        client.request("POST", "/v1/threads", body, headers)
        response = client.getresponse()
        answer = response.read()
        if response.status != 201:
            raise SystemExit(f"{response.status}: {answer.decode()}")


def bytes_per_thread(redis, redis_port, body, threads):
    port = free_port()
    settings = {
        "REDIS_URL": f"redis://127.0.0.1:{redis_port}",
        "LISTEN": f"127.0.0.1:{port}",
        "SIGNING_KEYS": "a:" + SECRET,
        "API_KEYS": "a:" + SECRET,
        "LOG": "error",
    }
    settings = {f"THREADKEEP_{name}": value for name, value in settings.items()}
    server = subprocess.Popen([PROGRAM], env=os.environ | settings)
    try:
        wait_for(port)
        # loads the scripts, and creates the first keys
        create(port, body, 1)
        before = redis.used_memory()
        each = threads // CONNECTIONS
        with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
            for done in [pool.submit(create, port, body, each) for _ in range(CONNECTIONS)]:
                done.result()
        return (redis.used_memory() - before) / (each * CONNECTIONS)
    finally:
        server.terminate()
        server.wait()


def bytes_per_key(redis, text, keys):
    redis.send("FLUSHALL", "SYNC")
    redis.reply()
    before = redis.used_memory()
    for _ in range(keys):
        key = f"tk:{{{random.randrange(100, 356)}}}:t:thrd_{random.getrandbits(128):032x}"
        redis.send("SET", key, text, "EX", 3600)
        redis.reply()
    return (redis.used_memory() - before) / keys


def measure(text, threads, options):
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        command = ["redis-server", "--port", str(port), "--save", "", "--dir", directory, *options]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            wait_for(port)
            redis = Redis(port)
            thread = bytes_per_thread(redis, port, f'{{"state":{text}}}', threads)
            return thread, bytes_per_key(redis, text, threads)
        finally:
            server.terminate()
            server.wait()


def main():
    print("state  settings        thread    key  more")
    for messages, text_bytes, threads in STATES:
        text = state(messages, text_bytes)
        for name, options in SETTINGS.items():
            thread, key = measure(text, threads, options)
            print(f"{len(text):5}  {name:14} {thread:7.0f} {key:6.0f} {thread - key:5.0f}", flush=True)


main()
