"""Uses every tool and resource with the official Python client. Repeats this in each protocol version that the client can
negotiate: mcp_client.py API_KEY SERVER REPLICA
"""

import asyncio
import itertools
import json
import sys
import urllib.request
import uuid
from contextlib import asynccontextmanager

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

API_KEY, *SERVERS = sys.argv[1:]
TOOLS = [
    "kv_write",
    "kv_read",
    "kv_list",
    "kv_delete",
    "kv_increment",
    "tasks_write",
    "tasks_read",
    "tasks_update",
]
BEARER = {"authorization": f"Bearer {API_KEY}"}

turns = itertools.cycle(httpx2.URL(server) for server in SERVERS)
request_counts = {server: 0 for server in SERVERS}


async def alternate_servers(request):
    """Sends requests to the two replicas in turn."""
    replica = next(turns)
    request.url = request.url.copy_with(host=replica.host, port=replica.port)
    request.headers["host"] = f"{replica.host}:{replica.port}"
    request_counts[f"http://{replica.host}:{replica.port}"] += 1


@asynccontextmanager
async def connected(mode, headers=None, path="/mcp"):
    hooks = {"request": [alternate_servers]}
    async with httpx2.AsyncClient(headers=headers, event_hooks=hooks, timeout=120) as http:
        transport = streamable_http_client(SERVERS[0] + path, http_client=http)
        async with Client(transport, mode=mode, cache=None) as client:
            yield client


def session(mode, name):
    return connected(mode, {**BEARER, "x-session-id": name})


def post(path, body):
    request = urllib.request.Request(SERVERS[0] + path, json.dumps(body).encode(), BEARER)
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request) as response:
        return json.load(response)


async def call(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    assert json.loads(result.content[0].text) == result.structured_content, result
    return result.structured_content


async def call_with_error(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    assert result.is_error, result
    return result.content[0].text


async def refused(awaitable, *codes):
    try:
        await awaitable
    except MCPError as error:
        assert error.code in codes, error
    else:
        raise AssertionError("the call was not rejected")


async def use_every_tool(client):
    listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == TOOLS, listed
    # the client validates the results of the calls below against these schemas
    assert all(tool.title and tool.output_schema for tool in listed.tools), listed

    assert await call(client, "kv_write", key="user/name", value="Ada") == {"ok": True}
    assert await call(client, "kv_read", key="user/name") == {"found": True, "value": "Ada"}
    assert await call(client, "kv_list") == {"keys": ["user/name"]}
    assert (await call(client, "kv_increment", key="n", by=2))["value"] == 2
    assert (await call(client, "kv_increment", key="n", by=3))["value"] == 5
    assert await call(client, "kv_delete", key="n") == {"ok": True, "deleted": True}
    tasks = [{"content": "read", "status": "pending"}, {"content": "write", "status": "pending"}]
    assert await call(client, "tasks_write", tasks=tasks) == {"ok": True}
    assert await call(client, "tasks_update", index=1, status="completed") == {"ok": True}
    stored = (await call(client, "tasks_read"))["tasks"]
    assert [task["status"] for task in stored] == ["pending", "completed"], stored

    text = await call_with_error(client, "kv_write", key="a b", value="")
    assert text.startswith("kv.write key must be namespaced"), text
    text = await call_with_error(client, "kv_write", key="k", value="x" * 32769)
    assert text == "kv value exceeds 32768 bytes", text
    await call_with_error(client, "kv_read")
    await refused(client.call_tool("no_such_tool", {}), -32602)


async def read_resources(client):
    templates = await client.list_resource_templates()
    assert templates.resource_templates[0].uri_template == "threadkeep://kv/{key}", templates
    for number in range(150):
        await call(client, "kv_write", key=f"many/{number:03}", value=str(number))

    uris, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        page = await client.list_resources(cursor=cursor)
        uris += [str(resource.uri) for resource in page.resources]
        cursor, pages = page.next_cursor, pages + 1
    assert pages > 1 and len(uris) == len(set(uris)) == 152, uris

    by_uri = {}
    for uri in uris[:5]:
        (content,) = (await client.read_resource(uri)).contents
        by_uri[uri] = content
    assert by_uri["threadkeep://kv/many%2F002"].text == "2", by_uri
    tasks = by_uri["threadkeep://tasks"]
    assert tasks.mime_type == "application/json"
    assert len(json.loads(tasks.text)["tasks"]) == 2, tasks
    # each revision of the protocol has its own error code
    await refused(client.read_resource("threadkeep://kv/none"), -32002, -32602)


async def check_isolation(mode):
    one, other = uuid.uuid4().hex, uuid.uuid4().hex
    thread = post("/v1/threads", {})
    async with session(mode, one) as client:
        await call(client, "kv_write", key="k", value=one)
    async with session(mode, other) as client:
        assert await call(client, "kv_list") == {"keys": []}
    async with connected(mode, {"x-thread-id": thread["signed_id"]}) as client:
        assert await call(client, "kv_list") == {"keys": []}
        await call(client, "kv_write", key="k", value="thread")
    url = post("/v1/mcp-urls", {"scope": f"session:{one}", "expires_in_seconds": 600})
    async with connected(mode, path=url["url"][url["url"].index("/mcp") :]) as client:
        assert (await call(client, "kv_read", key="k"))["value"] == one
    async with connected(mode, BEARER) as client:
        text = await call_with_error(client, "kv_write", key="k", value="gone")
        assert text == "kv.write requires run or session context", text
        assert await call(client, "kv_list") == {"keys": []}


async def check_rejected_credentials(mode):
    for headers, path in [
        (None, "/mcp"),
        ({"x-session-id": "s"}, "/mcp"),
        ({"x-thread-id": "thrd_0123456789abcdef0123456789abcdef;forged"}, "/mcp"),
        (None, "/mcp?scope=session:s&sig=forged"),
    ]:
        try:
            async with connected(mode, headers, path) as client:
                await client.list_tools()
        except Exception as error:  # each client raises a different type
            assert not isinstance(error, AssertionError), error
        else:
            raise AssertionError(f"{headers} {path} was accepted")


async def main():
    for mode in ["legacy", "auto"]:
        async with session(mode, uuid.uuid4().hex) as client:
            info = client.server_info
            assert info.name == "threadkeep", info
            assert "kv_write" in client.instructions
            await use_every_tool(client)
            await read_resources(client)
            print(f"Python, {mode}: protocol {client.protocol_version}")
        await check_isolation(mode)
        await check_rejected_credentials(mode)
    assert all(request_counts.values()), request_counts


asyncio.run(main())
