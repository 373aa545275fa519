"""A pytest plugin that runs the published tests of openai-agents against a server. openai.sh loads it.

The transport of the tests keeps items in a list. This plugin also sends each request to a conversation of the server, and
returns the server's answer. If a test injects a failure, the test gets the failure instead.
"""

import json
import os

import httpx

BASE_URL = os.environ["THREADKEEP_URL"]
HEADERS = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
# the conversation id in all of these tests
NAME = "conv_test"
reached = set()


def content(item):
    """Returns the members of an item that the server must return unchanged."""
    content = item.get("content")
    text = content if isinstance(content, str) else content and content[0]["text"]
    return [item.get(name) for name in ("role", "call_id", "name", "arguments", "output")] + [text]


class ServedTransport(httpx.MockTransport):
    """The transport of a test, backed by a conversation of the server."""

    conversation = None

    async def handle_async_request(self, request):
        reached.add(os.environ["PYTEST_CURRENT_TEST"].rsplit(" ", 1)[0])
        await request.aread()
        async with httpx.AsyncClient(base_url=BASE_URL, headers=HEADERS) as server:
            if self.conversation is None:
                made = await server.post("/conversations", json={"items": []})
                self.conversation = made.raise_for_status().json()
            try:
                answer = await super().handle_async_request(request)
            except httpx.ReadError:
                await self.send(server, request)
                raise
            if answer.status_code != 200:
                return answer
            if request.method == "POST" and request.url.path == "/v1/conversations":
                return httpx.Response(200, json={**self.conversation, "id": NAME})
            if request.method == "GET":
                await self.catch_up(server, answer.json()["data"], request.url.params)
            return await self.send(server, request)

    async def send(self, server, request):
        path = request.url.raw_path.decode().removeprefix("/v1")
        path = path.replace(NAME, self.conversation["id"])
        answer = await server.request(request.method, path, content=request.content)
        added = answer.raise_for_status().json()["data"]
        if request.method == "POST":
            sent = json.loads(request.content)["items"]
            assert [content(item) for item in added] == [content(item) for item in sent]
        return answer

    async def catch_up(self, server, expected, params):
        """Adds items to the server that only the transport's list contains: the initial items of a test, and the items of
        a request if the test discards the answer.
        """
        if params.get("order") != "asc":
            expected = expected[::-1]
        path, query, found = f"/conversations/{self.conversation['id']}/items", {"order": "asc"}, []
        while True:
            page = (await server.get(path, params=query)).raise_for_status().json()
            found += page["data"]
            if not page["has_more"]:
                break
            query["after"] = page["last_id"]
        stored = [content(item) for item in found]
        assert stored == [content(item) for item in expected[: len(stored)]]
        for begin in range(len(stored), len(expected), 20):
            items = expected[begin : begin + 20]
            (await server.post(path, json={"items": items})).raise_for_status()


httpx.MockTransport = ServedTransport


def pytest_sessionfinish(session):
    passed = session.testscollected - session.testsfailed
    print(f"\nopenai-agents, {session.items[0].path.name}: {passed} tests pass, {len(reached)} of them on the server")
