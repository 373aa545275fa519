"""Subscribes to threads with requests-sse over a proxy that cuts connections in the middle of events: event_stream.py
ADDRESS API_KEY

The library reconnects with its last cursor. The test compares the received events with the writes.
"""

import json
import random
import secrets
import socket
import sys
import threading
import time

import requests
from requests_sse import EventSource

WRITES = 100
CUTS = 3
# seconds between writes, so that writing continues while connections are cut
PAUSE = 0.03
WAIT_LIMIT = 600


class Link:
    """A proxy for a server. Cuts its first few connections after a random number of bytes."""

    def __init__(self, host, port):
        self.server = (host, port)
        self.cuts = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        server = socket.create_connection(self.server)
        threading.Thread(target=self.send, args=(client, server), daemon=True).start()
        remaining = random.randint(3_000, 8_000) if self.cuts < CUTS else None
        while chunk := server.recv(4096 if remaining is None else min(remaining, 4096)):
            client.sendall(chunk)
            if remaining is not None:
                remaining -= len(chunk)
                if remaining <= 0:
                    self.cuts += 1
                    break
        for end in (client, server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other side closed first
            end.close()

    @staticmethod
    def send(client, server):
        try:
            while chunk := client.recv(4096):
                server.sendall(chunk)
        except OSError:
            pass  # the link was cut


class Reader:
    """Reads events until the expected ones have arrived."""

    def __init__(self, link, path, api_key, is_last):
        self.events = []
        self.is_last = is_last
        self.error = None
        self.source = EventSource(
            "http://%s%s" % (link.address, path),
            headers={"Authorization": "Bearer " + api_key},
            timeout=600,
        )
        self.source.connect()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            for event in self.source:
                self.events.append((event.type, json.loads(event.data)))
                if self.is_last(self.events):
                    return
        except Exception as error:  # the main thread reports it
            self.error = error

    def wait(self):
        self.thread.join(WAIT_LIMIT)
        if self.error:
            raise self.error
        assert not self.thread.is_alive(), "received only %d events" % len(self.events)
        return self.events


def check_one_thread(server, api_key, session):
    thread = "thrd_" + secrets.token_hex(16)
    link = Link(*server)
    path = "/v1/threads/%s" % thread
    reader = Reader(
        link, path + "/events", api_key, lambda events: events[-1][0] == "thread.destroyed"
    )
    for number in range(WRITES):
        session.put(direct_url(server, path + "/state/k"), json=number).raise_for_status()
        time.sleep(PAUSE)
    session.delete(direct_url(server, path)).raise_for_status()

    events = reader.wait()
    types = [kind for kind, _ in events]
    versions = [event["data"]["version"] for _, event in events]
    expected = ["thread.created"] + ["thread.updated"] * (WRITES - 1) + ["thread.destroyed"]
    assert types == expected, types
    assert versions == list(range(1, WRITES + 1)) + [WRITES], versions
    assert events[-1][1]["data"]["state"] == {"k": WRITES - 1}, events[-1]
    assert link.cuts == CUTS, link.cuts
    print("One thread: %d events in order over %d cuts." % (len(events), link.cuts))


def check_all_threads(server, api_key, session):
    link = Link(*server)
    threads = {"thrd_" + secrets.token_hex(16) for _ in range(WRITES)}

    def ids(events):
        return {event["data"]["thread_id"] for kind, event in events if kind == "thread.created"}

    reader = Reader(
        link,
        "/v1/events?type=thread.created",
        api_key,
        lambda events: ids(events) >= threads,
    )
    for thread in threads:
        path = "/v1/threads/%s/state/k" % thread
        session.put(direct_url(server, path), json=1).raise_for_status()
        time.sleep(PAUSE)

    events = reader.wait()
    assert {kind for kind, _ in events} == {"thread.created"}
    assert link.cuts == CUTS, link.cuts
    print("All threads: %d of %d received over %d cuts." % (len(threads), len(threads), link.cuts))


def direct_url(server, path):
    """Returns the URL of a path on the server, bypassing the proxy."""
    return "http://%s:%d%s" % (*server, path)


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    server, api_key = (host, int(port)), sys.argv[2]
    session = requests.Session()
    session.headers["Authorization"] = "Bearer " + api_key
    check_one_thread(server, api_key, session)
    check_all_threads(server, api_key, session)


main()
