"""Receives webhooks, and verifies each webhook with a third-party library. Also changes the secret: webhooks.py URL
API_KEY
"""

import json
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

SERVER, API_KEY = sys.argv[1:3]
WAIT_LIMIT = 120

received = []  # (headers, body)
fail_next = [0]
lock = threading.Condition()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with lock:
            failing = fail_next[0] > 0
            if failing:
                fail_next[0] -= 1
            else:
                # the library expects lower-case names
                headers = {name.lower(): value for name, value in self.headers.items()}
                received.append((headers, body))
                lock.notify_all()
        self.send_response(500 if failing else 204)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def send(method, path, body=None, key=True):
    request = urllib.request.Request(SERVER + path, method=method)
    if key:
        request.add_header("authorization", "Bearer " + API_KEY)
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, data, timeout=WAIT_LIMIT) as answer:
        return json.loads(answer.read() or b"null")


def create_and_destroy():
    made = send("POST", "/v1/threads", {"state": {"n": "\u00e9 \u2028", "a": [1, 2.5, None]}})
    send("DELETE", "/v1/threads/" + made["id"])
    return made["id"]


def deliveries_of(threads):
    """Waits until both events of each thread have arrived. Returns the deliveries by thread."""
    end = time.monotonic() + WAIT_LIMIT
    with lock:
        while True:
            found = {thread: [] for thread in threads}
            ids = set()
            for headers, body in received:
                subject, id = json.loads(body)["subject"], headers["webhook-id"]
                # the server may repeat a delivery that was answered too late
                if subject in found and id not in ids:
                    found[subject].append((headers, body))
                    ids.add(id)
            if all(len(events) >= 2 for events in found.values()):
                return found
            remaining = end - time.monotonic()
            assert remaining > 0, "some events did not arrive"
            lock.wait(remaining)


def verifies(secret, headers, body):
    try:
        Webhook(secret).verify(body, headers)
        return True
    except WebhookVerificationError:
        return False


def check(threads, good, bad):
    for thread, events in deliveries_of(threads).items():
        types = [json.loads(body)["type"] for _, body in events]
        assert types == ["thread.created", "thread.destroyed"], types
        for headers, body in events:
            event = json.loads(body)
            assert headers["webhook-id"] == event["id"], "the ids differ"
            for secret in good:
                assert verifies(secret, headers, body), "a good secret does not verify"
            for secret in bad:
                assert not verifies(secret, headers, body), "a wrong secret verifies"
            # prove that the library rejects wrong messages
            assert not verifies(good[0], headers, body + b" "), "another body verifies"
            stale = dict(headers, **{"webhook-timestamp": "1000000000"})
            assert not verifies(good[0], stale, body), "an old message verifies"
        last = json.loads(events[-1][1])
        assert last["data"]["thread_id"] == thread
        assert last["data"]["state"] == {"n": "\u00e9 \u2028", "a": [1, 2.5, None]}


def main():
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d/hook" % receiver.server_address[1]
    types = ["thread.created", "thread.destroyed"]
    made = send("POST", "/v1/webhooks", {"url": url, "events": types})
    first, path = made["secret"], "/v1/webhooks/" + made["id"]
    unrelated = "whsec_" + "QUFB" * 10

    check([create_and_destroy() for _ in range(50)], [first], [unrelated])

    with lock:
        fail_next[0] = 2
    check([create_and_destroy() for _ in range(5)], [first], [unrelated])

    second = send("PATCH", path, {"secret": None})["secret"]
    assert second != first
    # the replica that delivers notices the change within seconds
    end = time.monotonic() + WAIT_LIMIT
    while True:
        threads = [create_and_destroy()]
        headers, body = deliveries_of(threads)[threads[0]][0]
        if verifies(second, headers, body):
            break
        assert time.monotonic() < end, "the new secret never signs"
    check([create_and_destroy() for _ in range(20)], [first, second], [unrelated])

    for headers, body in received:
        assert verifies(first, headers, body), "the previous secret stopped signing within a day"
    print("%d deliveries verified, including while the secret was replaced" % len(received))


main()
